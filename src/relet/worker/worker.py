"""A worker: claims into free slots, keeps what it holds, hands in what is done, and drains when asked to end."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from relet.client import asks
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.client.ids import default_holder, new_call_id, new_id
from relet.client.lease import STORE_AWAY
from relet.core import border, limits
from relet.core.bond import bound
from relet.core.border import invalid
from relet.core.errors import Error, LeaseLost, OutcomeUnknown
from relet.core.model import LostReason
from relet.core.rules.claim import Claim
from relet.core.rules.sweep import Sweep
from relet.core.trust import Status
from relet.worker.children import Children, where_is
from relet.worker.execute import DEADLINE_CODE, TIMEOUT_CODE, Outcome
from relet.worker.handin import HandIn
from relet.worker.logs import about
from relet.worker.sidecar import Sidecar
from relet.worker.signals import ABORT, DRAIN, SignalsHeld
from relet.worker.slots import Slot, Slots
from relet.worker.warden import Warden

if TYPE_CHECKING:
    from relet.client.awaiting import AsyncClient
    from relet.worker.app import App, Handler

log = logging.getLogger("relet.worker")

POLL_S: Final = 0.05
LOOK_S: Final = 0.02
"""How often an idle worker looks whether a holder has died; no commit tells of it, and a look takes microseconds."""
BACK_OFF_S: Final = 0.5
SWEEP_EVERY_S: Final = 2.0
STOP_WAIT_S: Final = 2.0
CONCURRENCY_MAX: Final = 1_000


class Worker:
    """Runs handlers of an app. Use it as `with` or `async with`; leaving drains.

    One supervisor thread claims and hands in; `def` handlers run in threads of their own, `async def` ones in
    the running loop of `async with`, or else in one loop in a thread. With `bind` its leases end with this process.
    """

    def __init__(
        self, app: App, db: Client | AsyncClient, *, queues: str | list[str] | None, concurrency: int,
        signals: bool, holder: str | None, grace: Any, bind: bool = False,
    ) -> None:  # fmt: skip
        self.client: Client = db if isinstance(db, Client) else db.blocking
        self.holder = holder or self.client.holder or f"{default_holder()}:{new_id()[-6:]}"
        self.concurrency = border.whole("concurrency", concurrency, least=1, most=CONCURRENCY_MAX)
        self._grace_s = border.duration_ms("grace", grace) / 1_000
        self._handlers = _chosen(app, queues)
        self._claim = asks.claim(
            sorted({handler.queue for handler in self._handlers.values()}), self.holder,
            kinds=sorted(self._handlers), handlers={kind: one.knobs for kind, one in self._handlers.items()},
        )  # fmt: skip
        self._signals = SignalsHeld() if border.flag("signals", signals) else None
        self._bind = bind
        self._lock: str | None = None
        self._changed = threading.Condition()
        self._finished: deque[tuple[Slot, Outcome]] = deque()
        self._slots = Slots(self.client, self._is_finished)
        self._hand_in = HandIn(self.client)
        self._thread: threading.Thread | None = None
        self._draining = threading.Event()
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._drain_until = float("inf")
        self._claim_at = self._sweep_at = 0.0
        self._found_nothing = False
        self._owed: Claim | None = None
        self.fault: BaseException | None = None
        """What ended the worker, when it was not asked to end."""
        self.attempts = 0
        """How many attempts have ended."""

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to work, in the background."""
        if self._thread is not None:
            raise invalid("worker", "is running already; make another one")
        if self._signals is not None:
            self._signals.hold()
        bond = self.client.backend.bind() if self._bind else None
        self._lock = None if bond is None else bond.lock
        if any(one.ways.beside and not one.ways.apart for one in self._handlers.values()):
            self._slots.sidecar = Sidecar(self.client.backend, self._lock)
        apart = [one for one in self._handlers.values() if one.ways.apart]
        for one in apart:
            where_is(one)  # refused now, and not when its first task comes
        if apart or bond is not None:
            self._slots.warden = Warden()
            if bond is not None:
                self._slots.warden.watch_own()
        if apart and self._slots.warden is not None:
            self._slots.children = Children(self.client, bond, self._slots.warden)
        log.info("worker %s starts on %s", self.holder, self.client.place)
        self._thread = threading.Thread(target=self._work, name="relet-worker", daemon=True)
        self._thread.start()
        return self

    def drain(self) -> None:
        """Claim no more; handlers may go on for the grace, then they are stopped and their leases released."""
        if not self._draining.is_set():
            self._drain_until = time.monotonic() + self._grace_s
            self._draining.set()
            self._slots.tell_draining()
            self._notify()

    def abort(self) -> None:
        """Stop all handlers now, and release their leases."""
        self.drain()
        self._drain_until = time.monotonic()
        self._notify()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the worker has ended; False when the time is over first."""
        assert self._thread is not None, "started before it is waited for"
        if timeout is None:
            # In slices, so that signal handlers of the main thread get their turn.
            while self._thread.is_alive():
                self._thread.join(0.2)
        else:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def wait_until_idle(self) -> int:
        """Wait until nothing is ready and nothing runs; how many attempts have ended."""
        while not self._idle.wait(0.2):
            if self._thread is None or not self._thread.is_alive():
                break
        return self.attempts

    def close(self) -> None:
        """Drain, wait for the end, give signal handlers back. Raises the fault that ended the worker, if one did."""
        self._end(None)
        self._leave()

    def _end(self, raised: BaseException | None) -> None:
        if raised is not None and not isinstance(raised, Exception):
            self.abort()
        self.drain()
        if self._thread is not None:
            self.wait()

    def _leave(self) -> None:
        if self._signals is not None:
            self._signals.give_back()
        if self.fault is not None:
            raise self.fault

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(raised)
        self._leave()

    async def __aenter__(self) -> Self:
        import asyncio

        self._slots.loop = asyncio.get_running_loop()
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.to_thread(self._end, raised)
        self._leave()

    # -- work ----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while self._round():
                pass
        except BaseException as fault:
            log.exception("worker %s ends by a fault", self.holder)
            self.fault = fault
            self._abandon()
        finally:
            self._hand_in.forget()
            self._slots.close()
            log.info("worker %s has ended", self.holder)

    def _round(self) -> bool:
        """One turn; False when the worker has ended."""
        self._await_turn()
        now = time.monotonic()
        self._heed(now)
        if self._found_nothing and not self._ends:
            self._look_for_the_dead(now)
        done = self._take_finished()
        granted = self._turn_over(done, now)
        if self._draining.is_set():
            if now >= self._drain_until and not self._stopping.is_set():
                self._stopping.set()
                self._stop_all()
            if not self._slots.busy and not self._hand_in.pending:
                return False
            return not (self._stopping.is_set() and now >= self._drain_until + STOP_WAIT_S and self._give_up())
        idle = self._found_nothing and not (self._slots.busy or granted or done or self._hand_in.pending)
        (self._idle.set if idle else self._idle.clear)()
        return True

    def _heed(self, now: float) -> None:
        """Signals, deadlines of leases, limits of time: whatever asks a handler to stop."""
        seen = 0 if self._signals is None else self._signals.seen
        if seen >= ABORT and self._drain_until > now:
            self.abort()
        elif seen >= DRAIN:
            self.drain()
        for slot in self._slots.all():
            slot.lease.belief.lose_by_clock()
        self._stop_overdue(now)

    @property
    def _ends(self) -> bool:
        return self._draining.is_set() or (self._signals is not None and self._signals.seen > 0)

    def _await_turn(self) -> None:
        with self._changed:
            if not self._finished:
                self._changed.wait(LOOK_S if self._found_nothing else POLL_S)

    def _take_finished(self) -> list[tuple[Slot, Outcome]]:
        done = []
        while self._finished:
            slot, outcome = self._finished.popleft()
            self._slots.free(slot)
            self.attempts += 1
            done.append((slot, outcome))
        return done

    def _turn_over(self, done: list[tuple[Slot, Outcome]], now: float) -> bool:
        """Hand in what is done and claim for the free slots, together where possible; was anything granted."""
        ask = self._next_claim(now)
        try:
            sent_ms = self.client.clock.fast_ms()
            grants = self._hand_in.send(done, ask)
        except STORE_AWAY as wrong:
            log.warning("the store is unavailable, worker %s waits: %s", self.holder, wrong)
            self._claim_at, self._found_nothing = now + BACK_OFF_S, False
            if ask is not None and isinstance(wrong, OutcomeUnknown):
                self._owed = msgspec.structs.replace(ask, again=True)
            return False
        self._owed = None
        if ask is not None:
            self._found_nothing = not grants
            self._claim_at = now if grants else now + POLL_S
        if done:
            self._found_nothing = False  # what has just ended may be ready again
        # Before the next handlers start: one that holds the interpreter's lock stops every thread where it stands,
        # and in the middle of a transaction that would stop the whole store.
        self._sweep(now)
        for lease in self.client.leases_of(grants, sent_ms, ask):
            if self._ends:
                self._hand_in.give_back(lease)  # granted while the worker was being asked to end
            else:
                taken = "" if lease.took_over is None else f", taken over from {lease.took_over.holder}"
                log.info("attempt %d begins%s", lease.attempt, taken, extra=about(lease))
                self._slots.start(self._handlers[lease.kind], lease)
        return bool(grants)

    def _next_claim(self, now: float) -> Claim | None:
        free = self.concurrency - self._slots.busy
        if free <= 0 or self._ends or now < self._claim_at:
            return None
        if any(slot.lease.status is Status.DOUBTFUL for slot in self._slots.all()):
            return None  # whose heartbeats fail takes no more work
        if self._owed is not None:
            return self._owed  # it may have been granted already: asked again, not anew
        ask = self._claim
        return Claim(
            holder=ask.holder, queues=ask.queues, kinds=ask.kinds, handlers=ask.handlers,
            n=min(free, limits.CLAIM_ITEMS_MAX), call_id=bound(self._lock, new_call_id()),
        )  # fmt: skip

    def _look_for_the_dead(self, now: float) -> None:
        try:
            if self.client.backend.bury():
                self._claim_at = now
        except STORE_AWAY as away:
            log.warning("a look at other workers was put off: %s", away)
            self._found_nothing = False  # the next claim finds out how the store is

    def _sweep(self, now: float) -> None:
        if now >= self._sweep_at and not any(slot.beside for slot in self._slots.all()):
            self._sweep_at = now + SWEEP_EVERY_S
            try:
                self.client.backend.call(Sweep())
                self.client.backend.bury()
            except STORE_AWAY as wrong:
                log.warning("a sweep was put off: %s", wrong)

    def _stop_overdue(self, now: float) -> None:
        for slot in self._slots.all():
            if now < slot.deadline:
                continue
            cause = slot.run.stopped
            if cause is None:
                slot.overdue = True
                slot.run.stop(_out_of_time(slot))
            elif slot.overdue and now >= slot.deadline + STOP_WAIT_S and slot.lease.status is not Status.LOST:
                # It does not listen. Its slot stays taken, but its lease ends, which fences what it still does.
                log.warning("it does not stop after its time; its attempt is ended", extra=about(slot.lease))
                self._hand_in.end_overdue(slot, cause)

    def _stop_all(self) -> None:
        for slot in self._slots.all():
            slot.run.stop(_told(slot.lease, LostReason.RELEASED, "the worker ends"))

    def _give_up(self) -> bool:
        """Handlers that do not stop: release what they hold, which fences what they still do."""
        for slot in self._slots.all():
            log.warning("it does not stop; its lease is released", extra=about(slot.lease))
            self._hand_in.give_back(slot.lease)
            self._slots.free(slot)
        return True

    def _abandon(self) -> None:
        """After a fault nobody hands in any more: tell the handlers, and let their leases lapse."""
        self._stop_all()
        for slot in self._slots.all():
            self._slots.free(slot)

    def _is_finished(self, slot: Slot, outcome: Outcome) -> None:
        self._finished.append((slot, outcome))
        self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify()


def _chosen(app: App, queues: str | list[str] | None) -> dict[str, Handler]:
    if not app.handlers:
        raise invalid("app", 'has no handlers; add one with @app.task("kind")')
    if queues is None:
        return dict(app.handlers)
    wanted = [queues] if isinstance(queues, str) else list(queues)
    chosen = {kind: one for kind, one in app.handlers.items() if one.queue in wanted}
    known = sorted({one.queue for one in app.handlers.values()})
    for name in wanted:
        if name not in known:
            raise invalid("queues", f"no handler works on {name!r}; there are {', '.join(known)}")
    return chosen


def _told(lease: Lease, reason: LostReason, why: str, code: str | None = None) -> LeaseLost:
    return LeaseLost(
        f"task {lease.task_id}: {why}; stop this work", reason=reason, token=lease.token, code=code,
        task_id=lease.task_id,
    )  # fmt: skip


def _out_of_time(slot: Slot) -> Error:
    why, code = f"its timeout of {slot.timeout_ms} ms is over", TIMEOUT_CODE
    if slot.by_deadline:
        why, code = "its deadline has come", DEADLINE_CODE
    return _told(slot.lease, LostReason.EXPIRED, why, code)
