"""An effect: recorded before it is tried, its receipt kept after; what nobody knows is never tried blindly again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from relet.client import work_asks
from relet.client.durable.contracts import Opaque, Promise, promise
from relet.client.durable.hands import surely
from relet.client.durable.results import converted, wanted
from relet.client.durable.sight import Saw, Sight
from relet.client.durable.waits import Waits, inside_effect
from relet.client.files import raw
from relet.core import border, limits
from relet.core.border import invalid, shown
from relet.core.errors import NotApplied
from relet.core.payload import Maybe, decode
from relet.core.rules.effect import Next
from relet.core.rules.end_effect import EndEffect
from relet.core.rules.start_effect import Start, StartEffect
from relet.core.work import EffectState, Outcome

if TYPE_CHECKING:
    from relet.client.durable.facts import RunFacts
    from relet.client.durable.hands import Hands

SHORT_WAIT_S = 5.0
"""Up to here a lookup is repeated in place; longer waits give the lease back."""


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

    @property
    def headers(self) -> dict[str, str]:
        """The key as an HTTP header."""
        return {"Idempotency-Key": self.key}


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
        said = promise(Opaque() if contract is None else contract)
        timeout_ms = border.duration_ms(
            "timeout", limits.EFFECT_TIMEOUT_MS / 1_000 if timeout is None else timeout, least=1
        )
        lease, kind = self._run.lease, wanted(function, returns)
        while True:
            self._hands.go_on()
            ask = work_asks.start_effect(
                lease.belief.grant.handle, name, payload, said.declared(), timeout_ms=timeout_ms, key=key
            )
            start: Start = await surely(self._run, self._hands, ask)
            call = self._call(start, timeout_ms)
            if start.next is Next.ASK:
                raise await self._waits.parked(work_asks.reconciling(ask, start))
            if start.next is Next.GO:
                found = await self._try(function, ask, call, said)
            elif start.next is Next.LOOK:
                found = await self._look(ask, call, said, start.settles_in_ms / 1_000)
            else:
                found = start.receipt or None
            if found is not None:
                return converted(decode(found), kind, f"the receipt of effect {ask.name!r}")

    def _call(self, start: Start, timeout_ms: int) -> EffectCall:
        return EffectCall(
            id=start.id, key=start.key, token=self._run.token, attempt=start.attempt, repeated=start.repeated,
            timeout=timeout_ms / 1_000,
        )  # fmt: skip

    async def _try(
        self, function: Callable[..., Any], ask: StartEffect, call: EffectCall, said: Promise
    ) -> msgspec.Raw | None:
        """Call, and keep the receipt; None when the outcome is unknown and somebody must look or be asked."""
        try:
            self._hands.go_on()
            self._run.require(0)
        except BaseException as stopped:
            await self._tell(call, Outcome.NOT_APPLIED, error=f"not sent: {stopped}")
            raise
        try:
            self._see(Saw.CALLED, ask, call)
            with inside_effect(ask.name):
                value = await self._hands.call(function, (decode(ask.payload), call), call.timeout)
            receipt = raw("receipt", value)
            self._see(Saw.ANSWERED, ask, call, receipt)
        except NotApplied as refused:
            self._see(Saw.REFUSED, ask, call)
            await self._tell(call, Outcome.NOT_APPLIED, error=str(refused) or "not applied")
            raise
        except Exception as raised:
            self._see(Saw.RAISED, ask, call)
            # An exception is not a "no": the call may have landed all the same.
            await self._tell(call, Outcome.UNKNOWN, error=border.text(f"{type(raised).__name__}: {raised}"))
            if said.repeatable:
                raise  # the next attempt repeats it, after the backoff
            return None
        ended = await self._tell(call, Outcome.APPLIED, receipt=receipt)
        return ended.receipt or receipt

    async def _look(
        self, ask: StartEffect, call: EffectCall, said: Promise, settles_in_s: float
    ) -> msgspec.Raw | None:
        """Ask the other side; None when it has not happened, and may be tried."""
        assert said.check is not None, "declared with a function that looks"
        while True:
            found = await self._hands.call(said.check, (decode(ask.payload), call), call.timeout)
            receipt = None if found is None else raw("receipt", found)
            self._see(Saw.LOOKED, ask, call, receipt)
            if receipt is not None:
                ended = await self._tell(call, Outcome.APPLIED, receipt=receipt, looked=True)
                return ended.receipt or receipt
            if settles_in_s <= 0:
                ended = await self._tell(call, Outcome.NOT_APPLIED, looked=True)
                return (ended.receipt or None) if ended.state is EffectState.SUCCEEDED else None
            if settles_in_s > SHORT_WAIT_S:
                raise await self._waits.parked(work_asks.settling(ask, call.id, settles_in_s))
            await self._hands.pause(settles_in_s)
            settles_in_s = 0.0

    def _see(self, what: Saw, ask: StartEffect, call: EffectCall, receipt: msgspec.Raw | None = None) -> None:
        self._run.lease.seen(Sight(
            what=what, task_id=self._run.task_id, token=call.token, name=ask.name, effect=call.id, key=call.key,
            attempt=call.attempt, timeout_ms=ask.timeout_ms, contract=ask.contract,
            payload=bytes(ask.payload).decode(), receipt=None if receipt is None else bytes(receipt).decode(),
        ))  # fmt: skip

    async def _tell(
        self, call: EffectCall, outcome: Outcome, *, receipt: Maybe = msgspec.UNSET, error: str | None = None,
        looked: bool = False,
    ) -> Any:  # fmt: skip
        """Say what became of a try."""
        ask = EndEffect(
            handle=self._run.lease.belief.grant.handle, effect_id=call.id, attempt=call.attempt, outcome=outcome,
            receipt=receipt, error=error, looked=looked,
        )  # fmt: skip
        return await surely(self._run, self._hands, ask)
