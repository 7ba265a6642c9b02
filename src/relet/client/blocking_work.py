"""The blocking client's verbs of durable work, for everybody who holds no lease."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from relet.client import asks, work_asks
from relet.client.files import Files
from relet.client.views import Collected
from relet.core import border, limits
from relet.core.rules.inspect_work import Artifacts, Checkpoints, Referenced, Steps, Waits
from relet.core.work import Artifact, Checkpoint, Decision, Effect, Signalled, Step, Wait

if TYPE_CHECKING:
    from relet.core.backend import Backend


class WorkVerbs:
    """What a client asks about steps, artifacts, waits and effects."""

    backend: Backend
    files: Files

    def decide(
        self, task_id: str, name: str, decision: str, value: Any = None, by: str = "reviewer", *,
        digest: str | None = None,
    ) -> Decision:  # fmt: skip
        """Answer an open question: accept, edit (with the edited value), respond (with a text), ignore or deny.

        The first answer stands. With the `digest` of what was shown, a question that has changed is not answered.
        Raises `Conflict`: not asked, decided already, or out of time.
        """
        decided: Decision = self.backend.call(work_asks.decide(task_id, name, decision, value, by, digest))
        return decided

    def signal(self, task_id: str, name: str, payload: Any = None) -> Signalled:
        """Send a value to a task: taken by one that waits for it, else kept until one does."""
        signalled: Signalled = self.backend.call(work_asks.signal(task_id, name, payload))
        return signalled

    def waits(self, task_id: str | None = None, queue: str | None = None) -> list[Wait]:
        """Questions: all of one task, or the open ones of a queue or of all, oldest first."""
        ask = Waits(
            task_id=None if task_id is None else asks.task_id(task_id, "task_id"),
            queue=border.maybe_name("queue", queue), limit=limits.PAGE_ITEMS_MAX,
        )  # fmt: skip
        found: list[Wait] = []
        cursor: int | None = 0
        while cursor is not None:
            page = self.backend.call(msgspec.structs.replace(ask, after=cursor))
            found, cursor = found + page.waits, page.cursor
        return found

    def effects(
        self, state: str | None = None, task_id: str | None = None, *, limit: int = 100, after: str | None = None
    ) -> list[Effect]:
        """A page of side effects with their receipts; `state` is started, unknown, succeeded or failed.

        `after` is the last id of the page before.
        """
        found: list[Effect] = self.backend.call(work_asks.effects(state, task_id, after, limit))
        return found

    def reconcile(self, effect_id: str, outcome: str, receipt: Any = None, by: str = "reviewer") -> Effect:
        """Say what became of an unknown effect: applied (with its receipt) or not_applied (it may be tried).

        A task that waits for it goes on. Raises `Conflict` when it is settled already, or still under way.
        """
        effect: Effect = self.backend.call(work_asks.reconcile(effect_id, outcome, receipt, by))
        return effect

    def steps(self, id: str) -> list[Step]:
        """The kept calls of a task, in the order in which they were kept."""
        ask = Steps(task_id=asks.task_id(id))
        found: list[Step] = []
        while True:
            page = self.backend.call(ask)
            found += page.steps
            if page.cursor is None:
                break
            ask = msgspec.structs.replace(ask, after=page.cursor)
        whole = [msgspec.structs.replace(step, value=self.files.seen(step.value)) for step in found]
        return sorted(whole, key=lambda step: (step.at, step.token, step.name, step.n or 0, step.key or ""))

    def checkpoints(self, id: str, name: str | None = None) -> list[Checkpoint]:
        """The kept versions of a task's checkpoints, by name and newest first."""
        ask = Checkpoints(task_id=asks.task_id(id), name=border.maybe_name("name", name))
        found: list[Checkpoint] = self.backend.call(ask)
        return [msgspec.structs.replace(one, value=self.files.seen(one.value)) for one in found]

    def artifacts(self, id: str) -> list[Artifact]:
        """What was attached to a task, in that order."""
        found: list[Artifact] = self.backend.call(Artifacts(task_id=asks.task_id(id)))
        return found

    def collect(self, older: Any = "1d", dry_run: bool = False) -> Collected:
        """Remove stored bytes that nothing in this store names, whoever's, and that were last put `older` ago.

        An hour is the least: bytes are stored before the commit that names them. A place that other stores use too
        must not be collected by one of them, which knows nothing of what the others name.
        """
        older_ms = border.duration_ms("older", older, least=limits.ARTIFACT_AGE_MS_MIN)
        dry_run = border.flag("dry_run", dry_run)
        n, size = self.files.collect(self._referenced, older_ms / limits.SECOND_MS, dry_run=dry_run)
        return Collected(n=n, bytes=size, dry_run=dry_run)

    def _referenced(self, uris: Iterable[str]) -> set[str]:
        by_digest = {uri.partition(":")[2]: uri for uri in uris}
        return {by_digest[digest] for digest in self.backend.call(Referenced(digests=list(by_digest)))}

    def open(self, uri: str) -> BinaryIO:
        """The bytes of an artifact as a file, checked while they are read."""
        return self.files.place.open(uri)
