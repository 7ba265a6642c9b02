"""A step: a call whose result is kept under the lease, so that a later holder does not call again."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from relet.client.durable.book import Book
from relet.client.durable.hands import surely
from relet.client.durable.results import converted, fingerprint, refitted, wanted
from relet.client.durable.retry import RetryPolicy, Tries
from relet.client.files import raw
from relet.core import border, limits
from relet.core.border import invalid, shown
from relet.core.errors import Error, Permanent, Temporary
from relet.core.payload import decode
from relet.core.rules.step import KeepStep, changed

if TYPE_CHECKING:
    from relet.client.durable.facts import RunFacts
    from relet.client.durable.hands import Hands


class Meter:
    """What the running step has cost so far."""

    def __init__(self) -> None:
        self.cost: float | None = None


_METER: ContextVar[Meter | None] = ContextVar("relet_step", default=None)


def spend(cost: Any) -> None:
    """Add to the cost of the step that this code runs in. Raises `Invalid` outside of a step."""
    if not isinstance(cost, (int, float)) or isinstance(cost, bool) or not 0 <= cost <= limits.COST_MAX:
        raise invalid("cost", f"{shown(cost)} is not a number of 0 to {limits.COST_MAX:g}")
    meter = _METER.get()
    if meter is None:
        raise invalid("cost", "is reported from within a step; call run.spent() in the step's function")
    meter.cost = min((meter.cost or 0.0) + cost, limits.COST_MAX)


class Steps:
    """The steps of one run."""

    def __init__(self, run: RunFacts, hands: Hands, book: Book) -> None:
        self._run = run
        self._hands = hands
        self._book = book

    async def step(
        self, name: Any, function: Callable[..., Any], args: tuple[Any, ...], key: Any, timeout: Any,
        retry: RetryPolicy | None, returns: Any,
    ) -> Any:  # fmt: skip
        """The kept result of this call, or the result of making it."""
        self._hands.go_on()
        name = border.name("name", name)
        if not callable(function):
            raise invalid("fn", f"{shown(function)} is no function; give run.step(name, fn, *args)")
        self._hands.fits(function)
        timeout_ms = border.maybe_duration_ms("timeout", timeout, least=1)
        tries = Tries(retry, self._run.token)
        slot = self._book.begin(name, key)
        try:
            print_, kind = fingerprint(args), wanted(function, returns)
            kept = await self._book.kept(name, slot)
            if kept is not None:
                if kept.fingerprint != print_:
                    raise changed(self._run.task_id, name, slot)
                return refitted(await self._book.value(kept), kind, f"what step {name!r} kept")
            timeout_s = None if timeout_ms is None else timeout_ms / 1_000
            value, took_ms, cost = await self._made(function, args, timeout_s, tries)
            return await self._keep(name, slot, print_, kind, value, took_ms, cost)
        finally:
            self._book.end(name, slot)

    async def _keep(
        self, name: str, slot: str, print_: str | None, kind: Any, value: Any, took_ms: int, cost: float | None
    ) -> Any:
        lease, what = self._run.lease, f"result of step {name!r}"
        # Encoded and decoded the first time too: what a later holder will get is what this one works with.
        encoded = raw(what, value)
        answer = converted(decode(encoded), kind, f"the {what}")
        self._hands.go_on()
        if len(bytes(encoded)) >= limits.FILE_BYTES_MIN:
            encoded = await self._hands.send(lease.filed, what, encoded)
        ask = KeepStep(
            handle=lease.belief.grant.handle, name=name, slot=slot, value=encoded, fingerprint=print_,
            took_ms=took_ms, cost=cost,
        )  # fmt: skip
        kept = await surely(self._run, self._hands, ask)
        self._book.note(kept)
        if bytes(kept.value) != bytes(encoded):
            # Another thread was first.
            return refitted(await self._book.read(kept.value), kind, f"what step {name!r} kept")
        return answer

    async def _made(
        self, function: Callable[..., Any], args: tuple[Any, ...], timeout_s: float | None, tries: Tries
    ) -> tuple[Any, int, float | None]:
        meter = Meter()
        began = time.monotonic()
        while True:
            self._hands.go_on()
            before = _METER.set(meter)
            try:
                value = await self._hands.call(function, args, timeout_s)
            except (Permanent, Error):
                raise
            except Exception as raised:
                pause_s = tries.next_in_s(_asked_s(raised))
                if pause_s is None:
                    raise
            else:
                return value, int((time.monotonic() - began) * 1_000), meter.cost
            finally:
                _METER.reset(before)
            await self._hands.pause(pause_s)


def _asked_s(raised: Exception) -> float | None:
    if not isinstance(raised, Temporary) or raised.delay is None:
        return None
    return border.duration_ms("delay", raised.delay) / 1_000
