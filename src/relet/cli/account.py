"""The account of one task, put together from how it stands, its history and the refused writes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from relet.cli.answers import answer_command, asked_about, reconcile_command, settled
from relet.cli.words import now_utc, quoted
from relet.client.blocking import Client
from relet.core import limits
from relet.core.model import Cause, Event, GivenBack, LapsedBy, Rejection, State, Task
from relet.core.rules.queues import QueueState
from relet.core.work import Artifact, Decision, Effect, EffectState, Saving, Wait
from relet.worker.binding import INPUT_CODE

LET_GO: Final = frozenset([LapsedBy.HOLDER_EXPIRED, LapsedBy.MAX_SILENCE])


class Takeover(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that lapsed, and the one that came after it, if any has yet."""

    from_holder: str | None
    from_token: int | None
    to_holder: str | None
    to_token: int | None
    reason: str
    last_renewal: datetime
    silent_ms: int
    """From the last renewal until the lapse was seen."""
    lapsed_at: datetime
    """When the lapse was seen, and the lease ended by it."""
    taken_at: datetime | None
    expired_at: datetime | None
    """When its time was over; None where it ended before, by the proven death of its holder or by its own clock."""
    clock: str
    """Whose clock decided: `store`, or `holder`, which lets go a little earlier and says so."""
    by: str | None
    """`holder_expired` or `max_silence` where its holder let go, `restore` where the store went on from a backup."""


class Released(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that was given back, and the one that came after it, if any has yet."""

    holder: str | None
    token: int | None
    reason: str
    """`released`, or `worker_stopped`."""
    at: datetime
    to_holder: str | None
    to_token: int | None


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A name under which something is saved."""

    name: str
    version: int
    token: int | None
    at: datetime


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """All that `relet show` tells; the shape of its JSON."""

    task: Task
    ttl: float | None
    """Seconds that a heartbeat of the last lease bought."""
    takeovers: list[Takeover]
    released: list[Released]
    rejections: list[Rejection]
    checkpoints: list[Checkpoint]
    waiting: Wait | None
    """The question that it waits with, if it waits."""
    decisions: list[Decision]
    settled: list[str]
    """What was found out of effects for which it had been parked."""
    effects: list[Effect]
    """Those that are under way, or whose outcome nobody knows."""
    ways: dict[str, str]
    """By effect, the command by which somebody settles it, where that is a person's to do."""
    steps: Saving
    """What a later holder need not do again."""
    artifacts: list[Artifact]
    queue: QueueState | None
    """Of a ready task: how its queue stands, and what keeps the task waiting, if that is its queue's settings."""
    next: str
    """The command to go on with."""


def account_of(client: Client, id: str) -> Account:
    """Read the account of a task. Raises `NotFound`."""
    task = client.task(id)
    events = client.history(id)
    waits = client.waits(id)
    waiting = next((wait for wait in waits if wait.open), None)
    effects = [
        effect
        for state in (EffectState.STARTED, EffectState.UNKNOWN)
        for effect in client.effects(state, id, limit=limits.PAGE_ITEMS_MAX)
    ]
    asked = asked_about(waits)
    ways = {one.id: reconcile_command(one, asked) for one in effects}
    found = [(wait.decision, settled(wait)) for wait in waits if wait.decision is not None]
    return Account(
        task=task, ttl=_ttl(events), takeovers=takeovers_in(events), released=released_in(events),
        rejections=client.rejections(id),
        checkpoints=checkpoints_in(events), waiting=waiting,
        decisions=[made for made, said in found if said is None],
        settled=[said for _, said in found if said is not None], effects=effects,
        queue=client.queues(task.queue, task.share)[0] if task.state is State.READY else None,
        ways={one: way for one, way in ways.items() if way is not None},
        steps=saving_in(events), artifacts=client.artifacts(id), next=next_command(task, waiting, effects),
    )  # fmt: skip


def takeovers_in(events: list[Event]) -> list[Takeover]:
    """The lapses of a history, each with the grant that followed it."""
    grants = {
        event.detail["took_over"]["token"]: event
        for event in events
        if event.kind is Cause.CLAIMED and "took_over" in event.detail
    }
    found = []
    for event in events:
        if "silent_ms" not in event.detail:
            continue
        after, by = grants.get(event.token), event.detail.get("by")
        silent_ms, expired_ms_ago = int(event.detail["silent_ms"]), event.detail.get("expired_ms_ago")
        found.append(Takeover(
            from_holder=event.holder, from_token=event.token, to_holder=after.holder if after else None,
            to_token=after.token if after else None,
            reason=after.detail["took_over"]["reason"] if after else event.detail["why"],
            last_renewal=event.at - timedelta(milliseconds=silent_ms), silent_ms=silent_ms, lapsed_at=event.at,
            taken_at=after.at if after else None, by=by, clock="holder" if by in LET_GO else "store",
            expired_at=None if expired_ms_ago is None else event.at - timedelta(milliseconds=int(expired_ms_ago)),
        ))  # fmt: skip
    return found


def released_in(events: list[Event]) -> list[Released]:
    """The leases of a history that were given back, each with the grant that followed it."""
    found, after = [], None
    for event in reversed(events):
        if event.kind is Cause.CLAIMED:
            after = event
        if event.kind is Cause.RELEASED:
            found.append(Released(
                holder=event.holder, token=event.token, at=event.at,
                reason=event.detail.get("why", str(GivenBack.RELEASED)),
                to_holder=after.holder if after else None, to_token=after.token if after else None,
            ))  # fmt: skip
    return found[::-1]


def checkpoints_in(events: list[Event]) -> list[Checkpoint]:
    """What a history has saved, by name, the newest first."""
    latest: dict[str, Checkpoint] = {}
    for event in reversed(events):
        if event.kind is Cause.SAVED and event.detail["name"] not in latest:
            name = event.detail["name"]
            latest[name] = Checkpoint(name=name, version=event.detail["version"], token=event.token, at=event.at)
    return list(latest.values())


def saving_in(events: list[Event]) -> Saving:
    """What the steps of a history took, all together; their results are not read for it."""
    kept = [event.detail for event in events if event.kind is Cause.STEPPED]
    return Saving(
        steps=len(kept), took_ms=sum(one["took_ms"] for one in kept), cost=sum(one.get("cost") or 0.0 for one in kept)
    )


def next_command(task: Task, waiting: Wait | None, effects: list[Effect]) -> str:
    """What an operator would do next."""
    name = quoted(task.id)
    match task.state:
        case State.READY:
            return f"relet claim {quoted(task.queue)}"
        case State.LEASED:
            return _leased(task)
        case State.WAITING:
            return (waiting and answer_command(waiting, effects)) or f"relet history {name}"
        case State.DONE:
            return f"relet result {name}"
        case State.FAILED if task.code == INPUT_CODE:
            # The same input would fail in the same way.
            return f"relet submit {quoted(task.queue)} INPUT{_kind(task)}"
        case State.FAILED | State.CANCELLED:
            return f"relet requeue {name}"


def _leased(task: Task) -> str:
    if not task.live:
        return "relet sweep"
    quiet = task.renew_by is not None and task.renew_by < now_utc()
    # Its holder says nothing: where it died, the next worker takes over once the lease has lapsed.
    return "relet worker MODULE:APP" if quiet else f"relet cancel {quoted(task.id)}"


def _kind(task: Task) -> str:
    return "" if task.kind == task.queue else f" --kind {quoted(task.kind)}"


def _ttl(events: list[Event]) -> float | None:
    for event in reversed(events):
        if event.kind is Cause.CLAIMED:
            return float(event.detail["ttl_ms"]) / 1_000
    return None
