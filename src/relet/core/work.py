"""The nouns of durable work, as callers see them: steps, checkpoints, artifacts, waits, decisions, effects."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from relet.core.fields import DurationMs, SettlesMs


class WaitKind(StrEnum):
    """What a parked task waits for."""

    APPROVAL = "approval"
    SIGNAL = "signal"
    TIMER = "timer"
    RECONCILE = "reconcile"


class DecisionKind(StrEnum):
    """How a wait ended: by a person (the first five), by a signal, or by time."""

    ACCEPT = "accept"
    EDIT = "edit"
    RESPOND = "respond"
    IGNORE = "ignore"
    DENY = "deny"
    SIGNAL = "signal"
    TIMEOUT = "timeout"


BY_PERSON = (
    DecisionKind.ACCEPT, DecisionKind.EDIT, DecisionKind.RESPOND, DecisionKind.IGNORE, DecisionKind.DENY,
)  # fmt: skip
NEED_VALUE = (DecisionKind.EDIT, DecisionKind.RESPOND)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question, for ever: what, by whom, when, and on exactly what (`digest`)."""

    name: str
    n: int
    kind: DecisionKind
    value: Any
    by: str
    at: datetime
    digest: str

    @property
    def accepted(self) -> bool:
        """May what was asked for be done: accepted as it is, or as edited (the edited value is in `value`)."""
        return self.kind in (DecisionKind.ACCEPT, DecisionKind.EDIT)


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """One question of one task: what is asked, since when, until when, and the decision once there is one."""

    task_id: str
    queue: str
    name: str
    n: int
    """Which occurrence of the name it is, from 1."""
    kind: WaitKind
    ask: Any
    digest: str
    """A fingerprint of what is asked; a decision counts for this and for nothing else."""
    token: int
    """Whose lease parked it."""
    opened_at: datetime
    due_at: datetime | None
    open: bool
    decision: Decision | None


class Signalled(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a signal: taken by a task that waited for it, or kept for one that will."""

    taken: bool
    kept: int
    """How many are kept for this task now."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One memoised call: a later holder reads its value in place of calling again."""

    name: str
    key: str | None
    n: int | None
    """Which call of the name it was, from 1; None where it has a key."""
    token: int
    """Whose lease wrote it."""
    at: datetime
    took_ms: int
    cost: float | None
    """What the call cost, in whatever unit it reported."""
    value: Any


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One saved value; the last few of each name are kept."""

    name: str
    version: int
    token: int
    at: datetime
    value: Any


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes saved under a lease: where they are, and what they must be."""

    name: str
    uri: str
    sha256: str
    size: int
    token: int
    at: datetime


class EffectState(StrEnum):
    """How far an effect has come. `started` becomes `unknown` once its lease is gone."""

    STARTED = "started"
    UNKNOWN = "unknown"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Outcome(StrEnum):
    """What is known of one try."""

    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    UNKNOWN = "unknown"


class ContractKind(StrEnum):
    """What the other side promises about a repeated call."""

    KEYED = "keyed"
    NATURAL = "natural"
    CONDITIONAL = "conditional"
    QUERYABLE = "queryable"
    OPAQUE = "opaque"


class Contract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A declared contract, in the form in which it is kept."""

    kind: ContractKind
    retention_ms: DurationMs | None = None
    """For how long the other side remembers the key, from the first try on."""
    settles_ms: SettlesMs = 0
    """How long after the last try a lookup may still miss it: the longest flight and the delay of visibility."""
    checked: bool = False
    """The program has a function that looks."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said about a try; kept for whoever settles the effect, and no authority by itself."""

    token: int
    attempt: int
    outcome: Outcome
    receipt: Any
    error: str | None
    at: datetime


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A side effect outside of the store, with its receipt."""

    id: str
    task_id: str
    queue: str
    name: str
    key: str | None
    state: EffectState
    contract: Contract
    tries: int
    token: int
    """Whose lease started the last try."""
    receipt: Any
    error: str | None
    reconciled_by: str | None
    started_at: datetime
    updated_at: datetime
    evidence: list[Evidence]


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps of a task have taken so far: what a later holder need not do again."""

    steps: int
    took_ms: int
    cost: float
