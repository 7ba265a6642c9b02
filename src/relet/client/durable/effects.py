"""An effect: recorded before it is tried, its receipt kept after; what nobody knows is never tried blindly again."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from relet.client import work_asks
from relet.client.durable.contracts import Declared, Opaque, declared
from relet.client.durable.hands import surely
from relet.client.durable.results import refitted, wanted
from relet.client.durable.sight import Saw, Sight
from relet.client.durable.waits import Waits, inside_effect
from relet.client.files import raw
from relet.client.lease import EFFECT_UNKNOWN
from relet.client.redacting import log_named
from relet.client.telling import WARNING, tell
from relet.core import border, limits
from relet.core.border import invalid, shown
from relet.core.errors import Conflict, NotApplied, OutcomeUnknown
from relet.core.payload import Maybe, decode
from relet.core.rules.effect import Next
from relet.core.rules.end_effect import EARLY, EffectEnded, EndEffect
from relet.core.rules.start_effect import Start, StartEffect
from relet.core.work import EffectState, Outcome

if TYPE_CHECKING:
    from relet.client.durable.facts import RunFacts
    from relet.client.durable.hands import Hands

log = log_named("relet.run")

SHORT_WAIT_S: Final = 5.0
"""Up to here a lookup is repeated in place; longer waits give the lease back."""
LOOKS_MAX: Final = 5
"""So often a lookup is repeated in place."""
STARTS_MAX: Final = 3
"""So often a try is recorded whose time is over before it can be sent."""


class EffectCall(msgspec.Struct, frozen=True, kw_only=True):
    """What the function of an effect is told beside the payload."""

    id: str
    key: str
    """For the other side: the same for each try of this effect, whoever makes it."""
    token: int
    attempt: int
    """Which try this is, from 1."""
    repeated: bool
    """An earlier try may have applied."""
    timeout: float
    """Seconds that are left of this try; whatever the function sends must have ended by then."""

    @property
    def headers(self) -> dict[str, str]:
        """The key as an HTTP header."""
        return {"Idempotency-Key": self.key}


class Wanted(NamedTuple):
    """What is to be done, and on what terms."""

    ask: StartEffect
    function: Callable[..., Any]
    contract: Declared
    timed: bool
    """The caller gave a timeout; the default one moves no blocking function to another thread."""


def _takes_two(function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called as an effect's is, before anything is recorded."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as wrong:
        name = getattr(function, "__name__", shown(function))
        raise invalid("fn", f"{name} cannot be called with (payload, effect): {wrong}") from wrong
    except ValueError:
        return  # one of C's, which does not tell what it takes


class Effects:
    """The effects of one run."""

    def __init__(self, run: RunFacts, hands: Hands, waits: Waits) -> None:
        self._run = run
        self._hands = hands
        self._waits = waits

    async def effect(
        self, name: Any, payload: Any, function: Callable[..., Any], key: Any, contract: Any, timeout: Any,
        returns: Any,
    ) -> Any:  # fmt: skip
        """The receipt of this effect: kept from an earlier try, or made now."""
        self._hands.go_on()
        if not callable(function):
            raise invalid("fn", f"{shown(function)} is no function; give run.effect(name, payload, fn)")
        self._hands.fits(function)
        _takes_two(function)
        terms = declared(Opaque() if contract is None else contract)
        timeout_ms = border.duration_ms(
            "timeout", limits.EFFECT_TIMEOUT_MS / 1_000 if timeout is None else timeout, least=1
        )
        handle, kind = self._run.lease.belief.grant.handle, wanted(function, returns)
        unsent = 0
        while True:
            self._hands.go_on()
            ask = work_asks.start_effect(handle, name, payload, terms.stored(), timeout_ms=timeout_ms, key=key)
            goal = Wanted(ask, function, terms, timeout is not None)
            # Read before it is sent: the store counts the time of the try from its own, later instant.
            by_ms = self._run.lease.belief.clock.fast_ms() + timeout_ms
            start: Start = await self._hands.whole(surely(self._run, self._hands, ask), self._never_sent)
            receipt: msgspec.Raw | None = start.receipt or None
            if start.next is Next.ASK:
                raise await self._waits.parked(work_asks.reconciling(ask, start))
            if start.next is Next.LOOK:
                receipt = await self._look(goal, self._call(start, timeout_ms), start.settles_in_ms / 1_000)
            elif start.next is Next.GO:
                call = await self._in_time(self._call(start, timeout_ms), by_ms)
                if call is not None:
                    receipt = await self._try(goal, call)
                elif (unsent := unsent + 1) == STARTS_MAX:
                    raise _too_slow(ask, unsent)
            if receipt is not None:
                return refitted(decode(receipt), kind, f"the receipt of effect {ask.name!r}")

    def _call(self, start: Start, timeout_ms: int) -> EffectCall:
        return EffectCall(
            id=start.id, key=start.key, token=self._run.token, attempt=start.attempt, repeated=start.repeated,
            timeout=timeout_ms / 1_000,
        )  # fmt: skip

    async def _never_sent(self, start: Start) -> None:
        """Cancelled while it was being recorded."""
        if start.next is Next.GO:
            await self._tell(self._call(start, 0), Outcome.NOT_APPLIED, error="not sent: it was cancelled before")

    async def _in_time(self, call: EffectCall, by_ms: float) -> EffectCall | None:
        """The call, with what is left of its time; None when nothing is, and nothing was sent."""
        try:
            self._hands.go_on()
            self._run.require(0)
        except BaseException as stopped:
            await self._tell(call, Outcome.NOT_APPLIED, error=f"not sent: {stopped}")
            raise
        left_s = (by_ms - self._run.lease.belief.clock.fast_ms()) / 1_000
        if left_s > 0:
            return msgspec.structs.replace(call, timeout=left_s)
        await self._tell(call, Outcome.NOT_APPLIED, error="not sent: the time of the try was over before it could be")
        return None

    async def _try(self, goal: Wanted, call: EffectCall) -> msgspec.Raw | None:
        """Call, and keep the receipt; None when there is none yet, and the store says what to do now."""
        ask = goal.ask
        try:
            self._see(Saw.CALLED, ask, call)
            with inside_effect(ask.name):
                value = await self._hands.call(
                    goal.function, (decode(ask.payload), call), call.timeout, timed=goal.timed,
                    late=lambda value: self._heard_late(call, value),
                )  # fmt: skip
            receipt = raw("receipt", value)
            self._see(Saw.ANSWERED, ask, call, receipt)
        except NotApplied as refused:
            self._see(Saw.REFUSED, ask, call)
            ended = await self._tell(call, Outcome.NOT_APPLIED, error=str(refused) or "not applied")
            if ended.state is EffectState.FAILED:
                raise
            if goal.contract.repeatable and ended.state is not EffectState.SUCCEEDED:
                raise _still_unknown(ask, call, refused) from refused
            return None
        except asyncio.CancelledError:
            await self._hands.last_word(lambda: self._tell(call, Outcome.UNKNOWN, error="cancelled half-way"))
            raise
        except Exception as raised:
            self._see(Saw.RAISED, ask, call)
            tell(
                log, WARNING, self._run.lease.belief.grant, "effect %r: its outcome is unknown", ask.name,
                reason=Outcome.UNKNOWN, raised=raised,
            )  # fmt: skip
            # An exception is not a "no": the call may have landed all the same.
            ended = await self._tell(call, Outcome.UNKNOWN, error=f"{type(raised).__name__}: {raised}")
            if goal.contract.repeatable and ended.state is not EffectState.SUCCEEDED:
                raise  # the next attempt repeats it, after the backoff
            return None
        ended = await self._hands.whole(self._tell(call, Outcome.APPLIED, receipt=receipt))
        return ended.receipt or receipt

    async def _look(self, goal: Wanted, call: EffectCall, settles_in_s: float) -> msgspec.Raw | None:
        """Ask the other side; None when it has not happened, and may be tried."""
        ask, check = goal.ask, goal.contract.check
        assert check is not None, "declared with a function that looks"
        for _ in range(LOOKS_MAX):
            found = await self._hands.call(check, (decode(ask.payload), call), call.timeout, timed=goal.timed)
            receipt = None if found is None else raw("receipt", found)
            self._see(Saw.LOOKED, ask, call, receipt)
            if receipt is not None:
                ended = await self._tell(call, Outcome.APPLIED, receipt=receipt, looked=True)
                return ended.receipt or receipt
            if settles_in_s <= 0:
                try:
                    ended = await self._tell(call, Outcome.NOT_APPLIED, looked=True)
                except Conflict as early:
                    if early.code != EARLY:
                        raise
                    settles_in_s = early.detail["settles_in_ms"] / 1_000  # by the store's clock, which is what counts
                else:
                    return (ended.receipt or None) if ended.state is EffectState.SUCCEEDED else None
            if settles_in_s > SHORT_WAIT_S:
                break
            await self._hands.pause(settles_in_s)
            settles_in_s = 0.0
        raise await self._waits.parked(work_asks.settling(ask, call.id, settles_in_s))

    def _see(self, what: Saw, ask: StartEffect, call: EffectCall, receipt: msgspec.Raw | None = None) -> None:
        self._run.lease.seen(Sight(
            what=what, task_id=self._run.task_id, token=call.token, name=ask.name, effect=call.id, key=call.key,
            attempt=call.attempt, timeout_ms=ask.timeout_ms, contract=ask.contract,
            payload=bytes(ask.payload).decode(), receipt=None if receipt is None else bytes(receipt).decode(),
        ))  # fmt: skip

    async def _tell(
        self, call: EffectCall, outcome: Outcome, *, receipt: Maybe = msgspec.UNSET, error: str | None = None,
        looked: bool = False,
    ) -> EffectEnded:  # fmt: skip
        """Say what became of a try."""
        error = None if error is None else border.text(error)
        ask = self._ending(call, outcome, receipt=receipt, error=error, looked=looked)
        ended: EffectEnded = await surely(self._run, self._hands, ask)
        return ended

    def _ending(self, call: EffectCall, outcome: Outcome, **said: Any) -> EndEffect:
        handle = self._run.lease.belief.grant.handle
        return EndEffect(handle=handle, effect_id=call.id, attempt=call.attempt, outcome=outcome, **said)

    def _heard_late(self, call: EffectCall, value: Any) -> None:
        """In the thread of a call that nobody waits for any more: its receipt is kept as evidence."""
        try:
            self._run.lease.send(self._ending(call, Outcome.APPLIED, receipt=raw("receipt", value)))
        except Exception as wrong:  # noqa: BLE001 - nobody waits for this thread, and its try is unknown already
            log.warning("the late receipt of effect %s (try %d) was not kept: %s", call.id, call.attempt, wrong)


def _too_slow(ask: StartEffect, times: int) -> TimeoutError:
    return TimeoutError(
        f"effect {ask.name!r}: nothing was sent; {times} times its timeout of {ask.timeout_ms} ms was over before "
        "the store had recorded the try. Give it a longer timeout=, or find what keeps the store or this process"
    )


def _still_unknown(ask: StartEffect, call: EffectCall, refused: NotApplied) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"effect {ask.name!r}: try {call.attempt} was not applied ({str(refused) or 'no reason given'}), but what "
        "became of an earlier one is not known. The next attempt repeats it, as its contract allows "
        "→ relet effects --state unknown",
        code=EFFECT_UNKNOWN, effect=call.id, attempt=call.attempt,
    )  # fmt: skip
