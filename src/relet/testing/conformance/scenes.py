"""Where a test starts: tasks brought into a state by verbs alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import pytest

from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.core.errors import Parked
from relet.core.model import Event, State, Task
from relet.core.work import Effect
from relet.testing.conformance.route import Route

A = TypeVar("A")

QUEUE: Final = "reports"
TTL_S: Final = 60
PATIENCE_S: Final = 20
"""How long a call in the background may take, in real time, before the test gives it up as hung."""
MOMENT_S: Final = 0.01


def ready(route: Route, id: str = "t", queue: str = QUEUE, **options: Any) -> Task:
    """A task that can be claimed, unless an option says otherwise."""
    return route.db.submit(queue, {"topic": id}, id=id, **options)


def taken(route: Route, queue: str = QUEUE, *, by: Client | None = None, **options: Any) -> Lease:
    """The lease of a claim that must find something."""
    lease = (by or route.db).claim(queue, **options)
    assert lease is not None, f"nothing to claim in {queue}"
    return lease


def held(route: Route, id: str = "t", holder: str = "A", queue: str = QUEUE, **options: Any) -> Lease:
    """A task of its own, held for a ttl of 60 s unless an option says otherwise."""
    ready(route, id, queue, **options)
    lease = taken(route, queue, holder=holder)
    assert lease.task_id == id, "something else was in the way"
    return lease


def expire(route: Route, lease: Lease, late: Any = 0) -> None:
    """Let the time that a lease was granted pass to the very millisecond, or so much longer."""
    route.clock.advance(lease.ttl)
    route.clock.advance(late)


def wear_out(route: Route, id: str = "t") -> Lease:
    """A dead letter, and the lease under which it failed."""
    lease = held(route, id)
    lease.fail("no way", retry=False)
    return lease


def brought_to(route: Route, state: State, id: str = "t") -> Lease | None:
    """A task in the state, and its last lease if it had one."""
    match state:
        case State.READY:
            ready(route, id)
            return None
        case State.LEASED:
            return held(route, id)
        case State.DONE:
            lease = held(route, id)
            lease.complete({"pages": 3})
            return lease
        case State.FAILED:
            return wear_out(route, id)
        case State.CANCELLED:
            ready(route, id)
            route.db.cancel(id, "not needed")
            return None
        case State.WAITING:
            return parked(route, id=id)


STATES: Final = tuple(State)


def parked(
    route: Route, name: str = "publish", kind: str = "approval", *, id: str = "t", **options: Any
) -> Lease:  # fmt: skip
    """The lease of a task of its own that was given back with a question."""
    lease = held(route, id)
    ended = lease.park(name, kind, **options)
    assert ended.state is State.WAITING, "something had answered already"
    return lease


def unknown_effect(route: Route, id: str = "t") -> Effect:
    """An effect by the name of `pay` whose outcome nobody knows; its task is parked until somebody does."""
    lease = held(route, id)
    with lease.run() as run, pytest.raises(Parked):
        run.effect("pay", {"amount": 5}, unanswered)
    (effect,) = route.db.effects(state="unknown", task_id=id)
    return effect


def unanswered(payload: Any, effect: Any) -> Any:
    """The call may have arrived."""
    raise TimeoutError(f"no answer to {payload} under {effect.key}")


def date(route: Route, seconds: float) -> datetime:
    """So many seconds from now."""
    return datetime.fromtimestamp(route.clock.wall_ms() / 1_000 + seconds, UTC)


def ms_until(route: Route, when: datetime | None) -> int:
    """Milliseconds from now until a time that the store showed; 0 for none."""
    return 0 if when is None else round(when.timestamp() * 1_000) - route.clock.wall_ms()


def left_ms(route: Route, id: str = "t") -> int:
    """How long the store will still wait for the holder of a task."""
    task = route.db.task(id)
    assert task.expires_at is not None, f"{id} is not leased"
    return ms_until(route, task.expires_at)


def delay_ms(route: Route, id: str = "t") -> int:
    """How long a ready task still waits for its time."""
    task = route.db.task(id)
    assert task.state is State.READY, f"{id} is {task.state}"
    return ms_until(route, task.due_at)


def causes(route: Route, id: str = "t") -> list[str]:
    """The kinds of a task's events, oldest first."""
    return [str(event.kind) for event in route.db.history(id)]


class Background(Generic[A]):
    """A call on a thread of its own; calling this waits for its answer, or raises what it raised."""

    def __init__(self, work: Callable[[], A]) -> None:
        self._outcome: list[A] = []
        self._raised: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def __call__(self) -> A:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"no answer within {PATIENCE_S} s"
        if self._raised:
            raise self._raised[0]
        return self._outcome[0]

    def is_over(self) -> bool:
        """Has it answered or raised by now; looks once more in a moment if not."""
        self._thread.join(MOMENT_S)
        return not self._thread.is_alive()

    def _run(self, work: Callable[[], A]) -> None:
        try:
            self._outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - told to whoever asks for the answer
            self._raised.append(error)


def in_background(work: Callable[[], A]) -> Background[A]:
    """Start a call on a thread."""
    return Background(work)


def first(n: int, changes: Iterator[Event]) -> list[Event]:
    """The next events of a watch, which never ends by itself."""
    return in_background(lambda: list(islice(changes, n)))()
