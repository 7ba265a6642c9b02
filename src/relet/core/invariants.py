"""What holds in every store at every moment, whatever happened to its users; judged from rows and history alone.

A rule that is broken is answered as text that names the row. Rules of relet are not asked: who checks them against
themselves finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from relet.core.model import Cause, End, Event, State
from relet.core.rules.settle import has_let_go
from relet.core.states import MOVES
from relet.core.tx import LeaseRow, TaskRow
from relet.core.upkeep import Finding
from relet.core.work import EffectState
from relet.core.work_tx import EffectRow, WaitRow

WRITES: Final = frozenset({Cause.SAVED, Cause.STEPPED, Cause.ATTACHED, Cause.EFFECT_STARTED})
ENDS: Final = frozenset({
    Cause.COMPLETED, Cause.RETRIED, Cause.FAILED, Cause.RELEASED, Cause.LAPSED, Cause.PARKED, Cause.CANCELLED,
})  # fmt: skip
MOVING: Final = frozenset(cause for _, cause in MOVES)
UNSETTLED: Final = (EffectState.STARTED, EffectState.UNKNOWN)


class Version(Protocol):
    """A checkpoint, as a row or as callers see it."""

    @property
    def name(self) -> str:
        """What it was saved as."""

    @property
    def version(self) -> int:
        """Which one of the name it is, from 1."""

    @property
    def token(self) -> int:
        """Whose lease saved it."""


class Written(NamedTuple):
    """What was kept under a lease: a step, an artifact, or a version of a checkpoint."""

    what: str
    name: str
    version: int
    token: int


class Link(NamedTuple):
    """An event, and the one before it in the chain of its task."""

    event: Event
    before: int


class Whole(NamedTuple):
    """One task with all that is kept of it, each in the order of its primary key."""

    task: TaskRow
    leases: Sequence[LeaseRow]
    chain: Sequence[Link]
    waits: Sequence[WaitRow]
    effects: Sequence[EffectRow]
    written: Sequence[Written]

    @property
    def history(self) -> list[Event]:
        """Its events."""
        return [link.event for link in self.chain]


# What is said of a history alone, by whoever has one.


def completed_once(task_id: str, state: State, history: Iterable[Event]) -> Iterator[str]:
    """A task that is done was completed once, any other never."""
    n = sum(event.kind is Cause.COMPLETED for event in history)
    if n != (state is State.DONE):
        yield f"task {task_id} is {state} and was completed {n} times"


def claims_grow(task_id: str, history: Iterable[Event]) -> Iterator[str]:
    """Each claim of a task is under a larger token than the one before."""
    claims = [event for event in history if event.kind is Cause.CLAIMED]
    for before, after in pairwise(claims):
        if before.token is None or after.token is None or before.token >= after.token:
            yield f"task {task_id} was claimed under token {before.token}, and then under {after.token}"


def in_order(history: Iterable[Event]) -> Iterator[str]:
    """What happens under a lease happens between its claim and its end, and leases of a task do not overlap."""
    live: int | None = None
    for event in history:
        if event.kind is Cause.CLAIMED:
            if live is not None:
                yield f"{_at(event)} while the lease of token {live} was not over"
            live = event.token
        elif event.token is None or event.kind not in WRITES | ENDS:
            continue
        elif event.token != live:
            yield f"{_at(event)} when {'no lease was held' if live is None else f'token {live} held it'}"
        elif event.kind in ENDS:
            live = None


def _at(event: Event) -> str:
    return f"task {event.task_id}: {event.kind} {event.detail.get('name', '')} under token {event.token}"


def never_written_over(task_id: str, versions: Iterable[Version]) -> Iterator[str]:
    """A later version of a checkpoint is not an earlier holder's."""
    ordered = sorted(versions, key=lambda one: (one.name, one.version))
    for before, after in pairwise(ordered):
        if before.name == after.name and before.token > after.token:
            yield (
                f"checkpoint {after.name} of task {task_id}: token {after.token} wrote over what token "
                f"{before.token} had saved"
            )


# What is said of a task with its rows.


def _one_current_token(whole: Whole) -> Iterator[str]:
    task = whole.task
    held = [lease.token for lease in whole.leases if lease.ended is None]
    newest = max((lease.token for lease in whole.leases), default=0)
    if held != ([task.token] if task.state is State.LEASED else []):
        yield f"it is {task.state} with token {task.token or None}, and its open leases are {held}"
    if task.token != newest:
        yield f"its token is {task.token or None}, and the newest lease has {newest or None}"


def _leases_match_history(whole: Whole) -> Iterator[str]:
    claimed = sorted(event.token or 0 for event in whole.history if event.kind is Cause.CLAIMED)
    granted = [lease.token for lease in whole.leases]
    if claimed != granted:
        yield f"its history tells of claims under {claimed}, and the register has leases {granted}"


def _history_holds(whole: Whole) -> Iterator[str]:
    yield from completed_once(whole.task.id, whole.task.state, whole.history)
    yield from claims_grow(whole.task.id, whole.history)
    yield from in_order(whole.history)


def _chain_is_whole(whole: Whole) -> Iterator[str]:
    before = 0
    for link in whole.chain:
        if link.before != before:
            yield f"event {link.event.seq} follows {link.before or None}, and the one before it is {before or None}"
        before = link.event.seq
    if whole.task.last_event != before:
        yield f"its last event is said to be {whole.task.last_event or None}, and it is {before or None}"


def _moves_are_legal(whole: Whole) -> Iterator[str]:
    state: State | None = None
    # Other events move nothing, and are written before or after the move of their transaction.
    for event in (event for event in whole.history if event.kind in MOVING):
        moved = MOVES.get((state, event.kind))
        # A question whose answer is there already is asked and answered in one step.
        if event.state != moved and (moved, event.state) != (State.WAITING, State.READY):
            yield f"event {event.seq} says that {event.kind} led from {state} to {event.state}"
        state = event.state
    if state != whole.task.state:
        yield f"it is {whole.task.state}, and its last event left it {state}"


def _attempts_add_up(whole: Whole) -> Iterator[str]:
    task = whole.task
    least = 1 + task.failures + task.losses
    requeued = any(event.kind is Cause.REQUEUED for event in whole.history)
    if task.attempt < least or (task.attempt > least and not requeued):
        yield f"its attempt is {task.attempt}, after {task.failures} failures and {task.losses} losses"
    for before, after in pairwise(whole.leases):
        if before.attempt > after.attempt:
            yield f"token {after.token} has attempt {after.attempt}, token {before.token} before it {before.attempt}"


def _ends_in_time(whole: Whole) -> Iterator[str]:
    """A verb of the holder before the instant of expiry, a lapse from that instant on; both in store time.

    Before it lapses only what its holder let go, or what a dead one held.
    """
    told = {event.token: event for event in whole.history if event.kind in ENDS}
    for lease in whole.leases:
        if lease.ended is None or lease.ended_ms is None:
            continue
        why = told[lease.token].detail.get("why") if lease.token in told else None
        late = lease.ended_ms >= lease.expires_ms
        if lease.ended is End.LAPSED and not late and why in ("expired", "capped") and not has_let_go(lease):
            yield f"token {lease.token} lapsed {lease.expires_ms - lease.ended_ms} ms before its time"
        if lease.ended is not End.LAPSED and late:
            yield f"token {lease.token} was {lease.ended} {lease.ended_ms - lease.expires_ms} ms after it had expired"


def _waits_match(whole: Whole) -> Iterator[str]:
    task = whole.task
    pointed = next((wait for wait in whole.waits if wait.seq == task.wait_seq), None)
    if task.state is State.WAITING:
        if pointed is None or pointed.decision is not None or pointed.name != task.waiting_for:
            yield f"it waits for {task.waiting_for!r}, and question {task.wait_seq} is not open under that name"
    elif task.wait_seq is not None or task.waiting_for is not None:
        yield f"it is {task.state}, and still points at question {task.wait_seq}"


def _effects_match(whole: Whole) -> Iterator[str]:
    n = sum(effect.state in UNSETTLED for effect in whole.effects)
    if n != whole.task.unsettled:
        yield f"it counts {whole.task.unsettled} effects whose outcome is not known, and {n} are"
    held = {lease.token for lease in whole.leases if lease.ended is None}
    for effect in whole.effects:
        if effect.state is EffectState.STARTED and effect.token not in held:
            yield f"effect {effect.id} is started under token {effect.token}, whose lease is over: it is unknown"
        if effect.tries < 1 or effect.cleared > effect.tries:
            yield f"effect {effect.id} was tried {effect.tries} times, {effect.cleared} of them without consequence"


def _receipts_go_forward(whole: Whole) -> Iterator[str]:
    applied: set[str] = set()
    for event in whole.history:
        effect, outcome = str(event.detail.get("effect", "")), event.detail.get("outcome")
        if effect in applied and outcome != EffectState.SUCCEEDED:
            yield f"event {event.seq} says {event.kind} of effect {effect}, which had succeeded"
        elif outcome == EffectState.SUCCEEDED:
            applied.add(effect)
    for row in whole.effects:
        if row.id in applied and row.state is not EffectState.SUCCEEDED:
            yield f"effect {row.id} had succeeded, and is {row.state}"


def _written_under_leases(whole: Whole) -> Iterator[str]:
    tokens = {lease.token for lease in whole.leases}
    for one in whole.written:
        if one.token not in tokens:
            yield f"{one.what} {one.name!r} was written under token {one.token}, which is no lease of it"
    versions = [one for one in whole.written if one.what == "checkpoint"]
    yield from never_written_over(whole.task.id, versions)
    for before, after in pairwise(sorted(versions, key=lambda one: (one.name, one.version))):
        if before.name == after.name and before.version + 1 != after.version:
            yield f"checkpoint {after.name!r} goes from version {before.version} to {after.version}"


RULES: Final[dict[str, Callable[[Whole], Iterator[str]]]] = {
    "one-current-token": _one_current_token,
    "leases-match-history": _leases_match_history,
    "history-in-order": _history_holds,
    "chain-of-events": _chain_is_whole,
    "legal-moves": _moves_are_legal,
    "attempts": _attempts_add_up,
    "ends-in-time": _ends_in_time,
    "waits": _waits_match,
    "effects": _effects_match,
    "receipts-forward": _receipts_go_forward,
    "written-under-a-lease": _written_under_leases,
}


def judge(whole: Whole) -> Iterator[Finding]:
    """What does not hold of one task; nothing when all does."""
    for rule, holds in RULES.items():
        for text in holds(whole):
            yield Finding(rule=rule, row=f"task {whole.task.id}", text=text)
