"""The blocking client's verbs for whoever looks after a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from relet.client import asks
from relet.client.files import Files
from relet.client.views import Bulk

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
        return msgspec.structs.replace(self.backend.verify(self.files.exists), artifacts_at=self.files.where)

    def backup(self, to: str | os.PathLike[str]) -> BackedUp:
        """A copy of the store as it stands now, in a new file, verified before this returns; others go on meanwhile.

        Of all tenants. Stored bytes are not in it: `artifacts_at` names where they are, to be copied after it. Raises
        `Conflict` when the file is there, `Unavailable` when it cannot be written or the store is not whole.
        """
        made = self.backend.backup(os.fspath(to), self.files.exists)
        return msgspec.structs.replace(made, artifacts_at=self.files.where if made.artifacts else None)

    def prune(self, older: Any = None, dry_run: bool = False, *, queue: str | None = None) -> Bulk:
        """Remove tasks that finished `older` ago, or without it as long ago as their queue's `retention`.

        In small transactions. An id that has left is refused from then on (`RELET-GONE`), figures stay as they were,
        and `collect` finds the bytes that only they named. A task stays while one of its effects is not settled, and
        as long as its receipts must be kept: as their contract says, and for 30 days at least.
        """
        ids: list[str] = []
        cursor: int | None = 0
        while cursor is not None:
            batch = self.backend.call(asks.prune(queue, older, dry_run, cursor))
            ids, cursor = ids + batch.ids, batch.cursor
        return Bulk(ids=ids, dry_run=dry_run)
