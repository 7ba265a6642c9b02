"""The blocking client's verbs for whoever looks after a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from relet.client.files import Files

if TYPE_CHECKING:
    from relet.core.backend import Backend
    from relet.core.upkeep import BackedUp, Verified


class UpkeepVerbs:
    """What is asked about a store as a whole."""

    backend: Backend
    files: Files

    def verify(self) -> Verified:
        """Does all hold that must hold of this store, row by row, as it stands now; others go on meanwhile.

        Of all tenants. It looks for stored bytes that are named, too, but does not read them. Nothing is written.
        """
        return self.backend.verify(self.files.exists)

    def backup(self, to: str | os.PathLike[str]) -> BackedUp:
        """A copy of the store as it stands now, in a new file, verified before this returns; others go on meanwhile.

        Of all tenants. Stored bytes are not in it: `artifacts_at` names where they are, to be copied after it. Raises
        `Conflict` when the file is there, `Unavailable` when it cannot be written or the store is not whole.
        """
        made = self.backend.backup(to, self.files.exists)
        return msgspec.structs.replace(made, artifacts_at=self.files.where if made.artifacts else None)
