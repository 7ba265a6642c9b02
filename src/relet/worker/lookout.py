"""When a worker asks for work: at once while there is some; while there is none, when others commit or time comes."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Final

from relet.client.blocking import Client
from relet.client.ids import new_call_id
from relet.client.lease import STORE_AWAY
from relet.core import limits
from relet.core.backend import Watch
from relet.core.bond import bound
from relet.core.errors import Error
from relet.core.rules.claim import Claim
from relet.core.rules.glance import Glance
from relet.worker.portions import Portions

POLL_S: Final = 0.05
"""The longest pause of a worker: signals, deadlines, and a clock that was moved are noticed within it."""
GLANCE_EVERY_S: Final = 0.005
"""The shortest time between two looks in vain: others may commit a thousand times a second."""
GLANCE_ANYWAY_S: Final = 0.25
"""The longest time between two looks: the store's clock may have been moved on."""
VAIN_S_MIN: Final = 0.0025
VAIN_S_MAX: Final = 0.02
"""After so long on average looks, instead of being told, who was told of commits in vain before."""
CALM_S: Final = 1.0
"""After so long without a commit of anybody's it waits to be told again, which costs nothing."""
OWN_S: Final = 0.1
BACK_OFF_S: Final = 0.5
PATIENCE_MS: Final = 1
"""How long one of many who saw the same task waits for the write lock: whoever has it is about to take that task."""
GIVE_WAY_MAX: Final = 4
"""How often in a row; the next claim waits as any other does, for the lock may be held by those who take nothing."""
BUSY: Final = "RELET-BUSY"


class Lookout:
    """Belongs to the supervisor's thread; only `wake` is called by others.

    While nothing is there a worker reads and never asks for the write lock, however many of them wait.
    """

    def __init__(self, client: Client, ask: Claim, portions: Portions) -> None:
        self._client = client
        self._ask = ask
        self._portions = portions
        self._watch: Watch | None = None
        self._claim_at = self._glance_at = self._next_at = 0.0
        self._vain_s = 0.0
        self._told_at = 0.0
        """When it last saw that somebody had committed, while it looks instead of being told."""
        self._own_at = 0.0
        """When this worker itself committed last: it is told of that, too."""
        self._saw_work = False
        self._gave_way = 0
        self._is_told = True
        """Somebody has committed since the last look."""
        self.found_nothing = False
        """The last claim took all that was there."""
        self.lock: str | None = None
        """What its leases are bound to."""
        self.owed: Claim | None = None
        """A claim that may have been granted already: asked again, not anew."""

    def open(self) -> None:
        """Begin to watch the store."""
        self._watch = self._client.backend.watch()

    def close(self) -> None:
        """Watch it no longer."""
        if self._watch is not None:
            self._watch.close()

    def wake(self) -> None:
        """There is something to do."""
        if self._watch is not None:
            self._watch.wake()

    def rest(self, *, hungry: bool) -> None:
        """Wait for something to do: to be woken, or, with slots to fill, for work that may be there."""
        assert self._watch is not None, "opened when the worker started"
        now = time.monotonic()
        if not hungry:
            self._watch.pause(POLL_S)
        elif now < self._claim_at:
            self._watch.pause(min(POLL_S, self._claim_at - now))
        elif self.found_nothing:
            woken = now < self._glance_at and self._watch.pause(self._glance_at - now)
            if not woken:
                self._is_told = self._wait(self._watch) or self._is_told

    def _wait(self, watch: Watch) -> bool:
        left_s = max(0.0, min(POLL_S, self._next_at - time.monotonic()))
        try:
            if not self._vain_s:
                return watch.wait(left_s)
            # Many wait for the same work: by chance one looks before the others, and they find it taken.
            is_told = watch.pause(min(left_s, random.uniform(0, 2) * self._vain_s)) or watch.wait(0)
            now = time.monotonic()
            if is_told:
                self._told_at = now
            elif now - self._told_at > CALM_S:
                self._vain_s = 0.0
            return is_told
        except STORE_AWAY:
            watch.pause(POLL_S)
            return True  # whoever looks now meets what is wrong, and says it

    def next_claim(self, free: int, now: float, *, running: Sequence[str], along: bool) -> Claim | None:
        """What to ask for, if anything, while so many kinds run; `along` with results, and so at no cost."""
        if now < self._claim_at:
            return None
        if self.owed is not None:
            return self.owed
        if self.found_nothing and not along and not self._sees_work(now, self._portions.open(running)):
            return None
        portion = self._portions.next(running, free)
        if portion is None:
            return None
        ask = self._ask
        return Claim(
            holder=ask.holder, queues=ask.queues, kinds=portion.kinds, handlers=ask.handlers,
            n=min(portion.n, limits.CLAIM_ITEMS_MAX), call_id=bound(self.lock, new_call_id()),
        )  # fmt: skip

    @property
    def patience_ms(self) -> int | None:
        """For how long the claim that was made last may wait for the store; None for as long as usual."""
        return PATIENCE_MS if self._saw_work and self._gave_way < GIVE_WAY_MAX else None

    def gives_way(self, wrong: Error, now: float) -> bool:
        """Did a claim only meet others at the lock: then look again, each after a time of its own."""
        if wrong.code != BUSY or self.patience_ms is None:
            return False
        self._gave_way += 1
        self._saw_work, self._is_told = False, True
        self._in_vain()
        self._glance_at = now + GLANCE_EVERY_S
        return True

    def granted(self, ask: Claim, n: int) -> None:
        """So many leases came of a claim."""
        self.owed = None
        self._gave_way = 0
        # One that was repeated is answered as it was then, which says nothing of what is there now.
        self.found_nothing = self._portions.granted(n == ask.n) and not ask.again
        if n or not self._saw_work:
            self._own_at = time.monotonic()
        if n:
            self._vain_s = 0.0
        elif self._saw_work:
            self._in_vain()
        self._saw_work = False

    def back_off(self, now: float) -> None:
        """The store is unavailable: ask again a little later, and then for certain and with patience."""
        self._claim_at, self.found_nothing, self._saw_work = now + BACK_OFF_S, False, False

    def _sees_work(self, now: float, kinds: list[str]) -> bool:
        is_time = self._is_told or now >= min(self._next_at, self._glance_at + GLANCE_ANYWAY_S)
        if now < self._glance_at or not is_time:
            return False
        seen = self._client.backend.call(Glance(queues=self._ask.queues, kinds=kinds))
        if self._is_told and not seen.ready and now > self._own_at + OWN_S:
            self._in_vain()
        self._is_told = False
        self._glance_at = now + GLANCE_EVERY_S
        self._next_at = float("inf") if seen.next_ms is None else now + seen.next_ms / 1_000
        self._saw_work = seen.ready
        if seen.ready:
            self._portions.begin()
        return self._saw_work

    def _in_vain(self) -> None:
        self._vain_s = min(VAIN_S_MAX, max(VAIN_S_MIN, self._vain_s * 2))
        self._told_at = time.monotonic()
