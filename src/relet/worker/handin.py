"""Hand in what handlers produced: results in batches, with the next claim in the same transaction."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from relet.client import asks
from relet.client.belief import lose_all_by_clock
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.client.files import raw
from relet.client.lease import STORE_AWAY
from relet.client.telling import INFO, WARNING
from relet.core.errors import Conflict, Error, LeaseLost
from relet.core.model import End, GivenBack, Grant, LostReason
from relet.core.rules.claim import Claim
from relet.core.rules.complete import UNSETTLED, Complete, Completion
from relet.core.rules.effect import wait_name
from relet.core.rules.park import Park
from relet.core.rules.start_effect import BUSY
from relet.core.work import WaitKind
from relet.worker.ahead import Ahead
from relet.worker.execute import AWAY_CODE, DEADLINE_CODE, Done, Failed, Outcome, Stopped, Unsettled, Waiting
from relet.worker.logs import about, log
from relet.worker.trouble import Trouble

if TYPE_CHECKING:
    from relet.worker.slots import Slot

AWAY_DELAY_S = 1.0
"""For how long a task stays away whose handler met a store that was away, or an effect that another has under way."""


PATIENCE_MS_MAX = 2_000
"""Of one request: what was not taken is sent again, and in between the worker hears of signals and deadlines."""


class HandIn:
    """What is done and not yet told; kept, and the lease with it, until the store takes it or the lease is lost."""

    def __init__(self, client: Client, trouble: Trouble) -> None:
        self._client, self._trouble = client, trouble
        self._ahead = Ahead(client)
        self.pending: list[tuple[Slot, Outcome]] = []
        self.end_by = float("inf")
        """By `time.monotonic()`: until then all requests together wait for a busy store, and then no more."""
        self.was_beside = False
        """Was the last claim made before the results that went with it were in: they may have made room."""

    def send(
        self, done: list[tuple[Slot, Outcome]], ask: Claim | None, patience_ms: int | None = None
    ) -> list[Grant]:
        """Tell the store what is done, and claim. Raises `STORE_AWAY`, with everything kept for the next try.

        `patience_ms` bounds the wait for a busy store where there is nothing to tell.
        """
        # What is told for the second time goes together with a claim: who cannot tell gets no more to do.
        is_first = not self.pending
        self.pending += done
        # The keeper may not have looked yet, and past its deadline a holder writes nothing.
        lose_all_by_clock([slot.lease.belief for slot, _ in self.pending], self._client.clock)
        if over := [item for item in self.pending if _is_over(*item)]:
            for slot, outcome in over:
                _say_over(slot, outcome)
            self._told([slot for slot, _ in over], kept=True)
        results = [(slot, outcome) for slot, outcome in self.pending if isinstance(outcome, Done)]
        grants: list[Grant] = []
        self.was_beside = False
        if results and ask is not None and is_first:
            grants = self._complete_and_claim(results, ask)
        elif results:
            grants = self._complete(results, ask)
        elif ask is not None:
            grants = self._claim(ask, self._patience_ms(patience_ms))
        try:
            self._end_others()
        except STORE_AWAY as wrong:
            self._say_later(wrong)
        return grants

    def give_back(self, lease: Lease) -> None:
        """Release a lease, whatever its handler does; when that cannot be told, it lapses by itself."""
        try:
            self._release(lease, GivenBack.WORKER_STOPPED)
        except STORE_AWAY as wrong:
            about(WARNING, lease, "it could not be released, and will lapse: %s", wrong, reason=wrong)

    def end_overdue(self, slot: Slot, cause: Error) -> None:
        """End the attempt of a handler that was told to stop and does not."""
        try:
            self._stop(slot, cause)
        except STORE_AWAY as wrong:
            about(WARNING, slot.lease, "the end of its attempt is told later: %s", wrong, reason=wrong)

    def forget(self) -> None:
        """Nobody will hand in any more: let the leases lapse."""
        for slot, _ in self.pending:
            about(
                WARNING, slot.lease, "the end of its attempt could not be told; its lease will lapse", reason="worker"
            )
        self._told([slot for slot, _ in self.pending])

    def close(self) -> None:
        """Nothing is handed in any more."""
        self._ahead.close()

    def _complete_and_claim(self, results: list[tuple[Slot, Done]], ask: Claim) -> list[Grant]:
        """Side by side where the store does both at the same time. What was granted is answered, come what may."""
        asked = self._ahead.begin(len(results), partial(self._claim, ask, self._patience_ms()))
        if asked is None:
            return self._complete(results, ask)
        self.was_beside = True
        try:
            self._complete(results, None)
        except STORE_AWAY as wrong:
            if not (grants := asked.result()):
                raise
            self._say_later(wrong)
            return grants
        return asked.result()

    def _say_later(self, wrong: Error) -> None:
        what = "the end of an attempt is told later"
        if self._trouble.is_news(what, wrong):
            about(WARNING, self.pending[0][0].lease, f"{what}: %s", wrong, reason=wrong)

    def _claim(self, ask: Claim, patience_ms: int) -> list[Grant]:
        try:
            grants: list[Grant] = self._client.backend.call(ask, patience_ms=patience_ms)
        except LeaseLost as lost:
            # Only one that was repeated is answered so: its answer was missing for longer than a ttl.
            log.warning("%s was granted what it has lost before it heard of it: %s", ask.holder, lost)
            return []
        return grants

    def _complete(self, results: list[tuple[Slot, Done]], ask: Claim | None) -> list[Grant]:
        completions = [
            Completion(handle=slot.lease.belief.grant.handle, result=done.result) for slot, done in results
        ]
        asked = Complete(completions=completions, next=ask)
        answer = self._client.backend.call(asked, patience_ms=self._patience_ms())
        self._client.settled_all(
            End.COMPLETED, zip((slot.lease.belief for slot, _ in results), answer.outcomes, strict=True)
        )
        self._told([slot for slot, _ in results])
        is_said = log.isEnabledFor(INFO)
        for (slot, _), outcome in zip(results, answer.outcomes, strict=True):
            if isinstance(outcome, Error):
                self._refused(slot, outcome)
            elif is_said:
                about(INFO, slot.lease, "done", reason=End.COMPLETED)
        if isinstance(answer.grants, Error):
            log.warning("a claim of %s was refused: %s", "nobody" if ask is None else ask.holder, answer.grants)
            return []
        grants: list[Grant] = answer.grants
        return grants

    def _refused(self, slot: Slot, refusal: Error) -> None:
        about(WARNING, slot.lease, "its result was refused: %s", refusal, reason=refusal)
        if isinstance(refusal, Conflict) and refusal.code == UNSETTLED:
            self._again(slot, Unsettled(refusal.detail["effects"][0]))
        if isinstance(refusal, LeaseLost) and refusal.reason is LostReason.CANCELLED:
            self._again(slot, Stopped(refusal))  # it is over here, so the cancel can be carried out

    def _end_others(self) -> None:
        for slot, outcome in list(self.pending):
            match outcome:
                case Failed(arguments):
                    _say(slot, "failed: %s", arguments["error"], reason=arguments.get("code") or End.FAILED)
                    self._fail(slot.lease, **arguments)
                case Stopped(cause):
                    self._stop(slot, cause)
                case Unsettled(effect_id):
                    _say(slot, "waits until effect %s is reconciled", effect_id, reason=End.PARKED)
                    self._quietly(slot.lease, End.PARKED, _until(slot.lease, effect_id))
                case Waiting(parked):
                    _say(slot, "waits with %r", parked.name, reason=End.PARKED)
                case Done():
                    continue
            self._told([slot])

    def _stop(self, slot: Slot, cause: Error) -> None:
        """How a stopped attempt ends: by its timeout, by giving way, by a release; a lost lease ends by itself."""
        lease = slot.lease
        _say(slot, "stopped: %s", cause, reason=cause)
        if slot.overdue:
            self._fail(lease, str(cause), retry=cause.code != DEADLINE_CODE, code=cause.code)
        elif (owed := lease.belief.take_release()) is not None:
            self._release(lease, owed)
        elif isinstance(cause, LeaseLost) and cause.reason in (LostReason.CANCELLED, LostReason.RELEASED):
            # A pause where what was in the way may still be there, so that a handler is no endless loop.
            if cause.code in (AWAY_CODE, BUSY):
                self._release(lease, GivenBack.RELEASED, AWAY_DELAY_S)
            else:
                self._release(lease, GivenBack.WORKER_STOPPED)

    def _fail(self, lease: Lease, error: str, retry: bool = True, delay: Any = None, code: str | None = None) -> None:
        self._quietly(lease, End.FAILED, asks.fail(lease.belief.grant.handle, error, retry, delay, code))

    def _release(self, lease: Lease, why: GivenBack, delay: Any = 0) -> None:
        self._quietly(lease, End.RELEASED, asks.release(lease.belief.grant.handle, delay, why))

    def _patience_ms(self, asked_ms: int | None = None) -> int:
        """How long a request may wait for a busy store, at most as long as is asked for."""
        left_ms = (self.end_by - time.monotonic()) * 1_000
        return max(1, int(min(PATIENCE_MS_MAX if asked_ms is None else asked_ms, left_ms)))

    def _quietly(self, lease: Lease, how: End, ask: Any) -> None:
        try:
            lease.ends(how, ask, self._patience_ms())
        except STORE_AWAY:
            raise
        except Error as refused:
            about(INFO, lease, "not ended by this worker: %s", refused, reason=refused)

    def _again(self, slot: Slot, outcome: Outcome) -> None:
        """Its result was refused, and its end is still to be told: the lease is kept until it is."""
        self._client.keeper.add(slot.lease.belief)
        self.pending.append((slot, outcome))

    def _told(self, slots: list[Slot], *, kept: bool = False) -> None:
        """Nothing is left to hand in. `kept`: a lost lease stays with the keeper, which sends the release it owes."""
        beliefs = [slot.lease.belief for slot in slots]
        self._client.keeper.remove_all([one for one in beliefs if not (kept and one.is_lost)])
        gone = set(slots)
        self.pending = [item for item in self.pending if item[0] not in gone]


def _is_over(slot: Slot, outcome: Outcome) -> bool:
    """Ended by the handler itself, or lost: nothing to tell, except that a cancelled task gives way."""
    belief = slot.lease.belief
    return belief.ended is not None or (belief.is_lost and not isinstance(outcome, Stopped))


def _say(slot: Slot, text: str, *args: Any, reason: object) -> None:
    """Once, however often it takes to tell the store."""
    if not slot.is_end_said:
        slot.is_end_said = True
        about(INFO, slot.lease, text, *args, reason=reason)


def _say_over(slot: Slot, outcome: Outcome) -> None:
    belief = slot.lease.belief
    if isinstance(outcome, Waiting):
        about(INFO, slot.lease, "waits with %r", outcome.parked.name, reason=End.PARKED)
    elif belief.ended is not None:
        about(INFO, slot.lease, "ended by its handler", reason=belief.ended)
    else:
        about(INFO, slot.lease, "lost, so that what it leaves is dropped", reason=belief.cause or "-")


def _until(lease: Lease, effect_id: str) -> Park:
    """A wait until somebody has found out what became of an effect that a handler left open."""
    ask = raw("ask", {"effect": effect_id})
    return Park(handle=lease.belief.grant.handle, name=wait_name(effect_id), kind=WaitKind.RECONCILE, ask=ask)
