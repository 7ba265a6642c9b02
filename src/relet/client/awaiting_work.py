"""The awaiting client's verbs of durable work: as `WorkVerbs`, awaited."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from relet.client.views import Collected
from relet.core.work import Artifact, Checkpoint, Decision, Effect, Signalled, Step, Wait

if TYPE_CHECKING:
    from relet.client.blocking import Client


class AsyncWorkVerbs(ABC):
    """What an awaiting client asks about steps, artifacts, waits and effects."""

    blocking: Client

    @abstractmethod
    async def hop(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run a blocking call on a thread of this client."""

    async def decide(
        self, task_id: str, name: str, decision: str, value: Any = None, by: str = "reviewer", *,
        digest: str | None = None,
    ) -> Decision:  # fmt: skip
        """As `Client.decide`."""
        decided: Decision = await self.hop(self.blocking.decide, task_id, name, decision, value, by, digest=digest)
        return decided

    async def signal(self, task_id: str, name: str, payload: Any = None) -> Signalled:
        """As `Client.signal`."""
        signalled: Signalled = await self.hop(self.blocking.signal, task_id, name, payload)
        return signalled

    async def waits(self, task_id: str | None = None, queue: str | None = None) -> list[Wait]:
        """As `Client.waits`."""
        found: list[Wait] = await self.hop(self.blocking.waits, task_id, queue)
        return found

    async def effects(
        self, state: str | None = None, task_id: str | None = None, *, limit: int = 100, after: str | None = None
    ) -> list[Effect]:
        """As `Client.effects`."""
        found: list[Effect] = await self.hop(self.blocking.effects, state, task_id, limit=limit, after=after)
        return found

    async def reconcile(self, effect_id: str, outcome: str, receipt: Any = None, by: str = "reviewer") -> Effect:
        """As `Client.reconcile`."""
        effect: Effect = await self.hop(self.blocking.reconcile, effect_id, outcome, receipt, by)
        return effect

    async def steps(self, id: str) -> list[Step]:
        """As `Client.steps`."""
        found: list[Step] = await self.hop(self.blocking.steps, id)
        return found

    async def checkpoints(self, id: str, name: str | None = None) -> list[Checkpoint]:
        """As `Client.checkpoints`."""
        found: list[Checkpoint] = await self.hop(self.blocking.checkpoints, id, name)
        return found

    async def artifacts(self, id: str) -> list[Artifact]:
        """As `Client.artifacts`."""
        found: list[Artifact] = await self.hop(self.blocking.artifacts, id)
        return found

    async def collect(self, older: Any = "1d", dry_run: bool = False) -> Collected:
        """As `Client.collect`."""
        found: Collected = await self.hop(self.blocking.collect, older, dry_run)
        return found

    async def open(self, uri: str) -> BinaryIO:
        """As `Client.open`."""
        found: BinaryIO = await self.hop(self.blocking.open, uri)
        return found
