"""The blocking client's verbs for whoever looks after a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relet.client.files import Files

if TYPE_CHECKING:
    from relet.core.backend import Backend
    from relet.core.upkeep import Verified


class UpkeepVerbs:
    """What is asked about a store as a whole."""

    backend: Backend
    files: Files

    def verify(self) -> Verified:
        """Does all hold that must hold of this store, row by row, as it stands now; others go on meanwhile.

        Of all tenants. It looks for stored bytes that are named, too, but does not read them. Nothing is written.
        """
        return self.backend.verify(self.files.exists)
