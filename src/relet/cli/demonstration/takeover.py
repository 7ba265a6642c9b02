"""First act: A freezes, its lease lapses, B takes over, A wakes and is refused."""

from __future__ import annotations

import time
from collections.abc import Callable

from relet.cli.demonstration.act import Act, Tell
from relet.cli.demonstration.cast import Actor, Place
from relet.client.blocking import Client
from relet.core.model import Cause, State

TTL_S = 2.0
PACE_S = 0.25
PAGES = 6
FREEZE_AFTER = 3


class Takeover(Act):
    """A worker that is frozen loses its task, and its late write is refused."""

    def __init__(self, db: Client, place: Place, tell: Tell, meanwhile: Callable[[], None]) -> None:
        super().__init__(db, place, tell)
        self._meanwhile = meanwhile
        """What else there is to do while nothing happens but that time passes."""
        self._task_id = f"{self._queue}-report"

    def run(self) -> None:
        """All of it. Raises `Broken` at the first line that does not hold."""
        self._db.submit(self._queue, {"pages": PAGES}, id=self._task_id)
        with self._actor("A") as first:
            with self._actor("B") as second:
                token = self._a_claims(first, second)
                frozen_at = self._a_freezes(first, second)
                newer = self._b_takes_over(second, token, frozen_at)
            self._a_is_refused(first, token, newer)
            self._a_goes_on(first, newer)
        self._what_is_left(token, newer)

    def _a_claims(self, first: Actor, second: Actor) -> int:
        # A process may take long to start; while A is frozen, its ttl runs.
        second.hear("ready")
        first.begin()
        claimed = first.hear("claimed")
        token = int(claimed["token"])
        task = self._db.task(self._task_id)
        self._check(
            task.state is State.LEASED and task.live and task.holder == "A",
            f"A (process {first.pid}) claims the report: token {token}, ttl {TTL_S:g} s, renewed apart from the work",
            token=token, pid=first.pid,
        )  # fmt: skip
        return token

    def _a_freezes(self, first: Actor, second: Actor) -> float:
        saved = first.hear("saved", page=FREEZE_AFTER)
        first.freeze()
        frozen_at = time.monotonic()
        self._check(
            saved["page"] < PAGES,
            f"A has saved page {FREEZE_AFTER} of {PAGES}, and is frozen in mid-work (SIGSTOP)",
        )
        second.begin()
        second.hear("nothing", since=frozen_at)
        task = self._db.task(self._task_id)
        self._check(
            task.live and task.holder == "A",
            f"B (process {second.pid}) asks for work and gets nothing: A still owns it, frozen or not",
            pid=second.pid,
        )  # fmt: skip
        self._meanwhile()
        return frozen_at

    def _b_takes_over(self, second: Actor, token: int, frozen_at: float) -> int:
        claimed = second.hear("claimed")
        waited = claimed["at"] - frozen_at
        newer = int(claimed["token"])
        self._check(
            claimed["took_over"] == "A" and waited <= TTL_S + 1,
            f"A's lease lapses for want of a heartbeat; B takes over {waited:.1f} s after the freeze",
            seconds=round(waited, 2),
        )  # fmt: skip
        self._check(newer > token, f"B holds a larger token: {newer} > {token}", token=newer)
        resumed = second.hear("resumed")
        self._check(
            resumed["page"] == FREEZE_AFTER, f"B reads A's checkpoint and goes on after page {resumed['page']}"
        )
        second.hear("completed")
        result = self._db.result(self._task_id)
        self._check(
            result == [f"page {n} by {'A' if n <= FREEZE_AFTER else 'B'}" for n in range(1, PAGES + 1)],
            f"B finishes: {FREEZE_AFTER} pages by A, {PAGES - FREEZE_AFTER} by B, none read twice",
            result=result,
        )  # fmt: skip
        ends = [event for event in self._db.history(self._task_id) if event.kind is Cause.COMPLETED]
        self._check(len(ends) == 1, "B handed in its result twice, as after a lost reply: it was stored once")
        return newer

    def _a_is_refused(self, first: Actor, token: int, newer: int) -> None:
        before = self._db.task(self._task_id)
        first.thaw()
        refused = first.hear("refused", task=self._task_id)
        self._check(
            refused["reason"] in ("superseded", "expired"),
            f"A wakes, tries to save with token {token}, and is refused ({refused['reason']})",
            reason=refused["reason"],
        )  # fmt: skip
        late = first.hear("result refused", task=self._task_id)
        self._check(
            late["current"] == newer, f"A hands in a result all the same: refused, the task is at token {newer}"
        )
        after = self._db.task(self._task_id)
        self._check(before == after, "Nothing of the task has changed: B's result stands")
        feed = self._db.rejections(self._task_id)
        self._check(
            bool(feed) and all(item.token == token and item.current_token == newer for item in feed),
            f"Both sides can see it: {len(feed)} refused writes of token {token} are on record",
            refused=len(feed),
        )  # fmt: skip

    def _a_goes_on(self, first: Actor, newer: int) -> None:
        self._db.submit(self._queue, {"pages": 1}, id=f"{self._queue}-next")
        again = first.hear("claimed")
        self._check(again["token"] > newer, f"A, unharmed, claims the next task under token {again['token']}")

    def _what_is_left(self, token: int, newer: int) -> None:
        kinds = [event.kind for event in self._db.history(self._task_id)]
        story = [Cause.CLAIMED, Cause.LAPSED, Cause.CLAIMED, Cause.COMPLETED]
        self._check(
            [kind for kind in kinds if kind in story] == story,
            f"The history tells it: claimed ({token}), lapsed, claimed ({newer}), completed",
        )

    def _actor(self, holder: str) -> Actor:
        return Actor("actor", self._place, self._queue, holder, str(TTL_S), str(PACE_S))
