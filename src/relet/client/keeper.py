"""The keeper of heartbeats: one thread, apart from the work, renewing all leases of a client in one request."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from relet.client.belief import Belief
from relet.client.clock import HolderClock
from relet.client.telling import INFO, WARNING, tell
from relet.core.backend import Backend
from relet.core.errors import Error, LeaseLost
from relet.core.model import GivenBack, LostReason
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew

if TYPE_CHECKING:
    import logging

    from relet.client.beside.sidecar import Sidecar

TOGETHER: Final = 0.1
"""Leases whose beat is due within this share of their interval are renewed in the same request."""
PATIENCE_SHARE: Final = 1 / 6


class Keeper:
    """Renews what it was given, marks what is lost, and tells the holder at once."""

    def __init__(self, backend: Backend, clock: HolderClock) -> None:
        self._backend = backend
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._beside: Sidecar | None = None
        self._wakes_ms = 0.0
        """When the thread looks again by itself; 0 while it is not waiting."""
        self._reset()

    def add(self, belief: Belief) -> None:
        """Keep a lease from now on."""
        self.add_all((belief,))

    def add_all(self, beliefs: Iterable[Belief]) -> None:
        """Keep leases from now on."""
        if self._pid != os.getpid():
            # Threads do not survive a fork, and a child holds no lease of its parent.
            self._reset()
        with self._condition:
            if self._closed:
                return
            soonest_ms = self._wakes_ms
            for belief in beliefs:
                self._kept[belief] = self._kept.get(belief, 0) + 1
                # None: lost already; it must be told now.
                soonest_ms = min(soonest_ms, belief.trust.wake_at_ms() or 0.0)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="relet-keeper", daemon=True)
                self._thread.start()
            elif soonest_ms < self._wakes_ms:
                # Only then: one that is woken for each lease takes its time from those that do the work.
                self._wakes_ms = soonest_ms
                self._condition.notify()

    def keep_beside(self, belief: Belief) -> None:
        """Have a process beside this one keep a lease too that was added before; a beat that is due is sent first.

        Returns when that process runs. Raises `Invalid`.
        """
        beside = self.beside()
        with self._tending:
            # By the thread it would be under way when the work stops all threads, in the middle of its transaction.
            if self._is_due(belief, self._clock.fast_ms()):
                self._beat([belief], self._patience_ms([belief], [belief]))
        with self._condition:
            # Not what was let go of while the process began.
            if beside is not None and belief in self._kept:
                beside.keep(belief)

    def beside(self) -> Sidecar | None:
        """The process beside this one, started when first asked for; None once this is closed. Raises `Invalid`."""
        from relet.client.beside.sidecar import Sidecar

        if self._pid != os.getpid():
            self._reset()
        with self._starting:
            if self._beside is None and not self._closed:
                self._beside = Sidecar(self._backend, None)
            return self._beside

    def remove(self, belief: Belief) -> None:
        """Keep it no longer."""
        self.remove_all((belief,))

    def remove_all(self, beliefs: Iterable[Belief]) -> None:
        """Keep them no longer."""
        if self._pid != os.getpid():
            return
        with self._condition:
            gone = []
            for belief in beliefs:
                # One block inside of another: the outer one is still there.
                blocks = self._kept.pop(belief, 1)
                if blocks > 1 and belief.ended is None and not belief.is_lost:
                    self._kept[belief] = blocks - 1
                elif self._beside is not None:
                    gone.append(belief)
        if self._beside is not None:
            for belief in gone:
                self._beside.drop(belief)

    def shortest_ttl_s(self, belief: Belief) -> float:
        """Of all leases that are kept, and of this one: nobody may hold the store's lock for long beside it."""
        return min(one.grant.ttl_ms for one in [belief, *self._kept]) / 1_000

    def poke(self) -> None:
        """Look again now: a steered clock has moved."""
        if self._pid == os.getpid():
            with self._condition:
                self._condition.notify()

    def close(self) -> None:
        """Stop; leases that are still held lapse by themselves."""
        if self._pid != os.getpid():
            return
        with self._condition:
            self._closed = True
            self._kept.clear()
            self._condition.notify()
            thread = self._thread
        with self._starting:
            beside, self._beside = self._beside, None
        if beside is not None:
            beside.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._condition = threading.Condition()
        self._kept: dict[Belief, int] = {}
        """How many blocks keep each."""
        self._thread = None
        self._starting, self._tending = threading.Lock(), threading.Lock()
        # Kept by a child, and not used: one that let go of it would warn of a process that is not its own.
        self._of_parent, self._beside = self._beside, None
        self._closed = False
        self._wakes_ms = 0.0

    def _run(self) -> None:
        while True:
            with self._condition:
                if self._closed:
                    return
                # None: lost already, as whoever asked for its status has noted; it must be told now.
                wakes = [belief.wake_at_ms() or 0.0 for belief in self._kept]
                pause_s = max(0.0, (min(wakes) - self._clock.fast_ms()) / 1_000) if wakes else None
                if pause_s is None or pause_s > 0:
                    self._wakes_ms = min(wakes, default=float("inf"))
                    self._clock.wait(self._condition, pause_s)
                    self._wakes_ms = 0.0
                kept = list(self._kept)
            try:
                with self._tending:
                    self.tend(kept)
            except Exception:  # noqa: BLE001 - a keeper that dies would lose every lease
                _log().exception("the keeper of heartbeats met a fault and goes on")

    def tend(self, kept: list[Belief]) -> None:
        """One round: renew what is due, and let go of what is past its deadline."""
        now_ms = self._clock.fast_ms()
        due: list[Belief] = []
        owed: list[tuple[Belief, GivenBack]] = []
        for belief in kept:
            belief.trust.observe(now_ms, self._clock.wall_ms(), self._clock.suspended_ms())
            belief.lose_by_clock()
            if belief.ended is not None or belief.is_lost:
                self.remove(belief)
                if (why := belief.take_release()) is not None:
                    owed.append((belief, why))
            elif self._is_due(belief, now_ms):
                due.append(belief)
        if due:
            self._beat(due, self._patience_ms(due, kept))
        # After the beats: each may wait for a busy store, and nobody loses a lease by it.
        for belief, why in owed:
            self._give_back(belief, why, self._patience_ms([belief], kept))

    @staticmethod
    def _is_due(belief: Belief, now_ms: float) -> bool:
        at_ms = belief.renew_at_ms()
        return at_ms is not None and at_ms - belief.trust.interval_ms * TOGETHER <= now_ms

    def _patience_ms(self, due: list[Belief], kept: list[Belief]) -> int:
        """How long a beat may wait for a busy store: never past the next deadline, which nobody else watches."""
        soonest_ms = min((one.trust.deadline_ms for one in kept if not one.is_lost), default=float("inf"))
        share_ms = min(one.trust.ttl_ms for one in due) * PATIENCE_SHARE
        return max(1, int(min(share_ms, soonest_ms - self._clock.fast_ms())))

    def _beat(self, due: list[Belief], patience_ms: int) -> None:
        sent_ms = self._clock.fast_ms()
        try:
            answers = self._backend.call(
                Renew(handles=[belief.grant.handle for belief in due]), patience_ms=patience_ms
            )
        except Error as wrong:
            # No answer is not a loss: the deadline stays where it was, and the next try comes soon.
            soonest = min(due, key=lambda belief: belief.trust.deadline_ms).grant
            tell(
                _log(), WARNING, soonest, "%d heartbeat(s) had no answer, of this lease and those that end later: %s",
                len(due), wrong, reason=wrong,
            )  # fmt: skip
            for belief in due:
                belief.miss()
            return
        for belief, answer in zip(due, answers, strict=True):
            try:
                belief.confirm(answer, sent_ms)
            except LeaseLost as lost:
                self._hear(belief, lost)
            except Error as wrong:
                tell(_log(), WARNING, belief.grant, "a heartbeat was refused: %s", wrong, reason=wrong)
                belief.miss()

    def _hear(self, belief: Belief, lost: LeaseLost) -> None:
        if belief.ended is not None or lost.reason is LostReason.CAPPED:
            return  # ended by its own holder while the beat was under way, or held to its deadline
        self.remove(belief)
        tell(_log(), WARNING, belief.grant, "lease lost: %s", lost, reason=lost)

    def _give_back(self, belief: Belief, why: GivenBack, patience_ms: int) -> None:
        """Past its own deadline a holder sends one release, and nothing else."""
        tell(
            _log(), WARNING, belief.grant, "lease lost by this machine's own clock: %s", belief.cause,
            reason=belief.cause or "-",
        )  # fmt: skip
        try:
            self._backend.call(Release(handle=belief.grant.handle, why=why), patience_ms=patience_ms)
        except Error as refused:
            tell(_log(), INFO, belief.grant, "the release of a lost lease was not taken: %s", refused, reason=refused)


def _log() -> logging.Logger:
    """The keeper's logger; logging is imported when there is something to say."""
    import logging

    relet = logging.getLogger("relet")
    if not relet.handlers:
        # A library says nothing unless the program wants to hear it.
        relet.addHandler(logging.NullHandler())
    from relet.client.redacting import log_named

    return log_named("relet.keeper")
