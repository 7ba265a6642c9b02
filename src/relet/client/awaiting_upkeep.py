"""The awaiting client's verbs for whoever looks after a store."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from relet.client.views import Bulk

if TYPE_CHECKING:
    from relet.client.blocking import Client
    from relet.core.upkeep import BackedUp, Verified


class AsyncUpkeepVerbs(ABC):
    """What is asked about a store as a whole, awaited."""

    blocking: Client

    @abstractmethod
    async def hop(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run a blocking call on a thread of this client."""

    async def verify(self) -> Verified:
        """As `Client.verify`."""
        verified: Verified = await self.hop(self.blocking.verify)
        return verified

    async def backup(self, to: str | os.PathLike[str]) -> BackedUp:
        """As `Client.backup`."""
        made: BackedUp = await self.hop(self.blocking.backup, to)
        return made

    async def prune(self, older: Any = None, dry_run: bool = False, *, queue: str | None = None) -> Bulk:
        """As `Client.prune`."""
        bulk: Bulk = await self.hop(self.blocking.prune, older, dry_run, queue=queue)
        return bulk
