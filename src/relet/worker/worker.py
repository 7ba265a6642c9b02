"""A worker: claims into free slots, keeps what it holds, hands in what is done, and drains when asked to end."""

from __future__ import annotations

import threading
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from relet.client import asks
from relet.client.belief import lose_all_by_clock
from relet.client.beside.sidecar import Sidecar
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.client.ids import default_holder, new_id
from relet.client.lease import STORE_AWAY
from relet.client.redacting import log_named
from relet.client.telling import INFO, WARNING
from relet.core import border
from relet.core.border import invalid
from relet.core.errors import Error, OutcomeUnknown
from relet.core.model import LostReason
from relet.core.rules.sweep import Sweep
from relet.core.trust import Status
from relet.worker.children import Children
from relet.worker.choice import chosen
from relet.worker.execute import Done
from relet.worker.handin import HandIn
from relet.worker.logs import about
from relet.worker.lookout import Lookout
from relet.worker.orders import out_of_time, told
from relet.worker.portions import Portions
from relet.worker.retention import Retention
from relet.worker.signals import ABORT, DRAIN, SignalsHeld
from relet.worker.slots import Ended, Slots
from relet.worker.trouble import Trouble
from relet.worker.warden import Warden
from relet.worker.whereabouts import where_is

if TYPE_CHECKING:
    from relet.client.awaiting import AsyncClient
    from relet.worker.app import App

log = log_named("relet.worker")

HEED_EVERY_S: Final = 0.02
SWEEP_EVERY_S: Final = 2.0
STOP_WAIT_S: Final = 2.0
LAST_WORD_S: Final = 1.0
"""After that, all leases that are still held are released within so long, or left to lapse."""
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
        self._handlers = chosen(app, queues)
        self._claim = asks.claim(
            sorted({handler.queue for handler in self._handlers.values()}), self.holder,
            kinds=sorted(self._handlers), handlers={kind: one.knobs for kind, one in self._handlers.items()},
        )  # fmt: skip
        self._portions = Portions(self._handlers)
        self._signals = SignalsHeld() if border.flag("signals", signals) else None
        self._lookout = Lookout(self.client, self._claim, self._portions)
        self._finished: deque[Ended] = deque()
        self._slots = Slots(self.client, self._are_finished)
        self._bind = bind
        self._trouble = Trouble()
        self._hand_in = HandIn(self.client, self._trouble)
        self._thread: threading.Thread | None = None
        self._draining = threading.Event()
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._drain_until = float("inf")
        self._sweep_at = self._heed_at = 0.0
        self._retention = Retention(self.client, time.monotonic())
        self.fault: BaseException | None = None
        """What ended the worker, when it was not asked to end."""
        self.attempts = 0
        """How many attempts have ended."""

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to work, in the background."""
        if self._thread is not None:
            raise invalid("worker", "is running already; make another one")
        apart = [one for one in self._handlers.values() if one.ways.apart]
        for one in apart:
            where_is(one)  # refused now, and not when its first task comes
        try:
            if self._signals is not None:
                self._signals.hold()
            self._set_up(apart=bool(apart))
            log.info("worker %s starts on %s", self.holder, self.client.place)
            self._lookout.open()
            thread = threading.Thread(target=self._work, name="relet-worker", daemon=True)
            thread.start()
        except BaseException:
            self._slots.close()
            self._slots = Slots(self.client, self._are_finished)
            self._lookout.close()
            if self._signals is not None:
                self._signals.give_back()
            raise
        self._thread = thread
        return self

    def _set_up(self, *, apart: bool) -> None:
        """The processes beside this one that its handlers need."""
        bond = self.client.backend.bind() if self._bind else None
        self._lookout.lock = None if bond is None else bond.lock
        if any(one.ways.beside and not one.ways.apart for one in self._handlers.values()):
            self._slots.sidecar = Sidecar(self.client.backend, self._lookout.lock)
        if apart or bond is not None:
            self._slots.warden = Warden()
            if bond is not None:
                self._slots.warden.watch_own()
        if apart and self._slots.warden is not None:
            self._slots.children = Children(self.client, bond, self._slots.warden)

    def drain(self) -> None:
        """Claim no more; handlers may go on for the grace, then they are stopped and their leases released."""
        if not self._draining.is_set():
            self._end_by(time.monotonic() + self._grace_s)
            self._draining.set()
            self._slots.tell_draining()
            self._lookout.wake()

    def abort(self) -> None:
        """Stop all handlers now, and release their leases."""
        self.drain()
        self._end_by(time.monotonic())
        self._lookout.wake()

    def _end_by(self, drain_until: float) -> None:
        self._drain_until = drain_until
        self._hand_in.end_by = drain_until + STOP_WAIT_S + LAST_WORD_S

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
            if isinstance(fault, Error):
                log.error("worker %s ends: %s", self.holder, fault)  # noqa: TRY400 - it says what to do; no trace does
            else:
                log.exception("worker %s ends by a fault", self.holder)
            self.fault = fault
            self._abandon()
        finally:
            self._hand_in.forget()
            self._hand_in.close()
            self._slots.close()
            self._lookout.close()
            log.info("worker %s has ended", self.holder)

    def _round(self) -> bool:
        """One turn; False when the worker has ended."""
        self._await_turn()
        now = time.monotonic()
        self._heed(now)
        if self._lookout.found_nothing and not self._ends:
            self._look_for_the_dead()
        done = self._take_finished()
        granted = self._turn_over(done, now)
        if self._draining.is_set():
            if now >= self._drain_until and not self._stopping.is_set():
                self._stopping.set()
                self._stop_all()
            if not self._slots.busy and not self._hand_in.pending:
                return False
            return not (self._stopping.is_set() and now >= self._drain_until + STOP_WAIT_S and self._give_up())
        idle = self._lookout.found_nothing and not (self._slots.busy or granted or done or self._hand_in.pending)
        (self._idle.set if idle else self._idle.clear)()
        return True

    def _heed(self, now: float) -> None:
        """Signals, deadlines of leases, limits of time: whatever asks a handler to stop."""
        seen = 0 if self._signals is None else self._signals.seen
        if seen >= ABORT and self._drain_until > now:
            self.abort()
        elif seen >= DRAIN:
            self.drain()
        if now >= self._heed_at:
            self._heed_at = now + HEED_EVERY_S
            lose_all_by_clock([slot.lease.belief for slot in self._slots.all()], self.client.clock)
            self._stop_overdue(now)

    @property
    def _ends(self) -> bool:
        return self._draining.is_set() or (self._signals is not None and self._signals.seen > 0)

    def _await_turn(self) -> None:
        if not self._finished:
            # What could not be told is told again after a pause, before more is asked for.
            idle = not self._hand_in.pending and self._free() > 0
            self._lookout.rest(hungry=idle and self._portions.has_room(self._kinds()))

    def _take_finished(self) -> list[Ended]:
        done = []
        while self._finished:
            done.append(self._finished.popleft())
        self._slots.end(done)
        self.attempts += len(done)
        return done

    def _turn_over(self, done: list[Ended], now: float) -> bool:
        """Hand in what is done and claim for the free slots, together where possible; was anything granted."""
        others = any(not isinstance(outcome, Done) for _, outcome in (*done, *self._hand_in.pending))
        owed, ask = bool(done or self._hand_in.pending), None
        try:
            if (free := self._free()) > 0:
                ask = self._lookout.next_claim(free, now, running=self._kinds(), along=bool(done))
            sent_ms = self.client.clock.fast_ms()
            grants = self._hand_in.send(done, ask, self._lookout.patience_ms)
        except STORE_AWAY as wrong:
            if self._lookout.gives_way(wrong, now):
                return False
            self._trouble.warn(f"the store is unavailable, worker {self.holder} waits", wrong)
            self._lookout.back_off(now)
            if ask is not None and isinstance(wrong, OutcomeUnknown):
                self._lookout.owed = msgspec.structs.replace(ask, again=True)
            return False
        if ask is not None or (owed and not self._hand_in.pending):
            self._trouble.over()
        if ask is not None:
            self._lookout.granted(ask, len(grants))
        if others or self._hand_in.was_beside:
            # What was failed or released after the claim may be there at once, and what was completed makes room.
            self._lookout.found_nothing = False
        # Before the next handlers start: one that holds the interpreter's lock stops every thread where it stands,
        # and in the middle of a transaction that would stop the whole store.
        if not self._ends:
            self._sweep(now)
        if grants:
            self._begin(self.client.leases_of(grants, sent_ms, ask))
        return bool(grants)

    def _begin(self, leases: list[Lease]) -> None:
        if self._ends:
            for lease in leases:
                self._hand_in.give_back(lease)  # granted while the worker was being asked to end
            return
        if log.isEnabledFor(INFO):
            for lease in leases:
                old = lease.took_over
                taken = "" if old is None else f", taken over from {old.holder}, token {old.token}"
                why = "claimed" if old is None else old.reason
                about(INFO, lease, "attempt %d begins%s", lease.attempt, taken, reason=why)
        for lease, wrong in self._slots.start([(self._handlers[lease.kind], lease) for lease in leases]):
            about(WARNING, lease, "it could not be started here, and is given back: %r", wrong, reason="worker")
            self._hand_in.give_back(lease)
            self._lookout.back_off(time.monotonic())  # what was missing, such as threads, may still be

    def _kinds(self) -> list[str]:
        return [slot.lease.kind for slot in self._slots.all()] if self._portions.has_limits else []

    def _free(self) -> int:
        """How many attempts may be begun."""
        free = self.concurrency - self._slots.busy
        if free <= 0 or self._ends or any(slot.lease.status is Status.DOUBTFUL for slot in self._slots.all()):
            return 0  # whose heartbeats fail takes no more work
        return free

    def _look_for_the_dead(self) -> None:
        try:
            if self.client.backend.bury():
                self._lookout.found_nothing = False
        except STORE_AWAY as away:
            self._trouble.warn(f"a look of worker {self.holder} at others was put off", away)
            self._lookout.found_nothing = False  # the next claim finds out how the store is

    def _sweep(self, now: float) -> None:
        if now >= self._sweep_at and not any(slot.beside for slot in self._slots.all()):
            self._sweep_at = now + SWEEP_EVERY_S
            try:
                self.client.backend.call(Sweep())
                self._retention.tick(now)
                self.client.backend.bury()
            except STORE_AWAY as wrong:
                self._trouble.warn(f"a sweep of worker {self.holder} was put off", wrong)

    def _stop_overdue(self, now: float) -> None:
        for slot in self._slots.all():
            if now < slot.deadline:
                continue
            cause = slot.run.stopped
            if cause is None:
                slot.overdue = True
                slot.run.stop(out_of_time(slot))
            elif slot.overdue and now >= slot.deadline + STOP_WAIT_S and slot.lease.status is not Status.LOST:
                # It does not listen. Its slot stays taken, but its lease ends, which fences what it still does.
                about(WARNING, slot.lease, "it does not stop after its time; its attempt is ended", reason=cause)
                self._hand_in.end_overdue(slot, cause)

    def _stop_all(self) -> None:
        for slot in self._slots.all():
            slot.run.stop(told(slot.lease, LostReason.RELEASED, "the worker ends"))

    def _give_up(self) -> bool:
        """Handlers that do not stop: release what they hold, which fences what they still do."""
        for slot in self._slots.all():
            why, lost = slot.run.stopped or "-", slot.lease.belief.cause
            if lost is None or lost.reason is LostReason.CANCELLED:
                about(WARNING, slot.lease, "it does not stop; its lease is released", reason=why)
                self._hand_in.give_back(slot.lease)
            else:
                about(WARNING, slot.lease, "it does not stop, and had lost its lease before", reason=lost)
            self._slots.free(slot)
        return True

    def _abandon(self) -> None:
        """After a fault nobody hands in any more: tell the handlers, and let their leases lapse."""
        self._stop_all()
        for slot in self._slots.all():
            self._slots.free(slot)

    def _are_finished(self, ended: list[Ended]) -> None:
        self._finished.extend(ended)
        self._lookout.wake()
