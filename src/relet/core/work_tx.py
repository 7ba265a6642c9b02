"""The part of the port that durable work asks for: rows of steps, waits, signals, artifacts and effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from relet.core.model import Instants
from relet.core.payload import Maybe
from relet.core.work import (
    Artifact,
    Checkpoint,
    Contract,
    Decision,
    DecisionKind,
    Effect,
    EffectState,
    Outcome,
    Saving,
    Step,
    Wait,
    WaitKind,
)

if TYPE_CHECKING:
    from relet.core.tx import TaskRow


class StepRow(msgspec.Struct):
    """One memoised call. `slot` is its key, or which call of the name it was."""

    task_seq: int
    name: str
    slot: str
    fingerprint: str | None
    """Of the arguments; None where they have no JSON form."""
    token: int
    wall_ms: int
    took_ms: int
    cost: float | None
    value: str


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A step as its next holder reads it; a large value is read apart, and is not set here."""

    name: str
    slot: str
    fingerprint: str | None
    took_ms: int
    cost: float | None
    value: Maybe


class WaitRow(msgspec.Struct):
    """One question. Open while it has no decision and its task points at it."""

    seq: int
    task_seq: int
    tenant: str
    name: str
    n: int
    kind: WaitKind
    ask: str
    digest: str
    fallback: str | None
    """The decision that a timeout stands for, as JSON of its kind and value."""
    token: int
    opened_wall_ms: int
    due_wall_ms: int | None
    decision: DecisionKind | None
    value: str | None
    decided_by: str | None
    decided_wall_ms: int | None


class ArtifactRow(msgspec.Struct):
    """Bytes by name; the newest of a name is the one that is read."""

    task_seq: int
    name: str
    uri: str
    sha256: str
    size: int
    token: int
    wall_ms: int


class EffectRow(msgspec.Struct):
    """One effect and the newest that is known of it."""

    seq: int
    tenant: str
    id: str
    task_seq: int
    """The task whose lease started the last try."""
    name: str
    key: str | None
    fingerprint: str
    contract: Contract
    state: EffectState
    tries: int
    token: int
    first_wall_ms: int
    """When the first try was recorded: from there on the other side's memory is counted."""
    send_by_wall_ms: int
    """The last instant at which the last try may still have been sent."""
    receipt: str | None
    error: str | None
    reconciled_by: str | None
    updated_wall_ms: int
    call_id: str
    """Of the call that started the last try, so that repeating it is answered as it was."""
    cleared: int = 0
    """How many of the tries, counted from the first, are known not to have applied."""
    first_ms: int = 0
    """As `first_wall_ms`, in store time: a step of the wall clock must not make the other side seem to remember."""
    send_by_ms: int = 0
    starters: str = "[]"
    """Which token made which of the latest tries, as JSON: evidence of any other is none."""

    @property
    def repeated(self) -> bool:
        """A try that may have applied came before the last one."""
        return self.tries > self.cleared + 1


class EvidenceRow(msgspec.Struct):
    """Something said about a try, added and never changed."""

    effect_seq: int
    token: int
    attempt: int
    outcome: Outcome
    receipt: str | None
    error: str | None
    wall_ms: int


class WorkTx(Protocol):
    """As `Tx`, for durable work."""

    # Locks and writes.
    async def lock_step(self, task_seq: int, name: str, slot: str) -> StepRow | None: ...
    async def insert_step(self, row: StepRow) -> None: ...
    async def insert_artifact(self, row: ArtifactRow) -> None: ...
    async def lock_wait(self, seq: int) -> WaitRow: ...
    async def lock_question(self, task_seq: int, name: str, n: int, digest: str) -> WaitRow | None: ...
    async def lock_last_wait(self, task_seq: int, name: str) -> WaitRow | None: ...
    async def find_asker(self, task_seq: int) -> str | None:
        """The key that the task was parked with the last time. Under the task's lock, without which nobody parks."""

    async def lock_due_waits(self, limit: int) -> tuple[list[TaskRow], Instants]: ...
    async def lock_reconciling(self, name: str) -> list[WaitRow]: ...
    async def insert_wait(self, row: WaitRow) -> int: ...
    async def update_wait(self, row: WaitRow) -> None: ...
    async def lock_signal(self, task_seq: int, name: str) -> tuple[int, str] | None: ...
    async def find_signal(self, task_seq: int, call_id: str) -> int | None: ...
    async def insert_signal(
        self, task_seq: int, name: str, call_id: str, payload: str, wall_ms: int, taken_by: int | None
    ) -> None: ...
    async def take_signal(self, seq: int, taken_by: int) -> None: ...
    async def count_signals(self, task_seq: int) -> int: ...
    async def lock_effect(self, effect_id: str) -> EffectRow | None: ...
    async def lock_started(self, task_seq: int, token: int) -> list[EffectRow]: ...
    async def insert_effect(self, row: EffectRow) -> int: ...
    async def update_effect(self, row: EffectRow) -> None: ...
    async def lock_evidence(self, effect_seq: int) -> list[EvidenceRow]: ...
    async def insert_evidence(self, row: EvidenceRow) -> None: ...

    # Facts that need no lock.
    def fingerprint(self, text: str) -> str:
        """A keyed digest of a payload, so that a short one cannot be guessed from it."""

    # Reads.
    async def find_kept(self, task_seq: int, after: tuple[str, str], limit: int) -> list[Kept]: ...
    async def find_step(self, task_seq: int, name: str, slot: str) -> str | None: ...
    async def find_saving(self, task_seq: int) -> Saving: ...
    async def find_seq(self, task_id: str) -> int | None: ...
    async def find_steps(
        self, task_seq: int, after: tuple[str, str], limit: int
    ) -> tuple[list[Step], tuple[str, str] | None]: ...
    async def find_decisions(
        self, task_seq: int, name: str | None, after: int, limit: int
    ) -> tuple[list[Decision], int | None]: ...
    async def find_checkpoints(self, task_seq: int, name: str | None) -> list[Checkpoint]: ...
    async def find_artifacts(self, task_seq: int) -> list[Artifact]: ...
    async def find_artifact(self, task_seq: int, name: str) -> Artifact | None: ...
    async def find_waits(
        self, task_seq: int | None, queue: str | None, after: int, limit: int
    ) -> tuple[list[Wait], int | None]: ...
    async def find_open_effects(self, task_seq: int) -> list[str]: ...
    async def find_effects(
        self, state: EffectState | None, task_id: str | None, after: str | None, limit: int
    ) -> list[Effect]: ...
    async def find_effect(self, effect_id: str) -> Effect | None: ...
    async def find_referenced(self, digests: Sequence[str]) -> list[str]: ...
    async def find_named(self, digests: Sequence[str], queues: Sequence[str] | None) -> list[str]: ...
