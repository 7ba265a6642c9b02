"""Second act: C is killed between an order and its reply; D finds out what became of it, and does not repeat it."""

from __future__ import annotations

import signal
from contextlib import ExitStack

from relet.cli.demonstration.act import Act, Tell
from relet.cli.demonstration.cast import Actor, Place
from relet.cli.demonstration.shop import PATIENCE_S, Shop
from relet.client.blocking import Client
from relet.core.model import Cause
from relet.core.work import Effect, EffectState

TTL_S = 1.5


class LostReply(Act):
    """An effect whose reply was lost is not repeated."""

    def __init__(self, db: Client, place: Place, tell: Tell, cast: ExitStack) -> None:
        super().__init__(db, place, tell)
        self._task_id = f"{self._queue}-order"
        self._cast = cast

    def prepare(self) -> None:
        """Start its processes, which end with the cast: they take their time to start, and wait for their cue."""
        self._shop = self._cast.enter_context(Shop().open())
        self._first, self._second = (self._cast.enter_context(self._buyer(holder)) for holder in "CD")

    def run(self) -> None:
        """All of it, once prepared. Raises `Broken` at the first line that does not hold."""
        self._db.submit(self._queue, {"item": "paper"}, id=self._task_id)
        self._c_orders(self._first, self._shop)
        self._c_is_killed(self._first, self._shop)
        self._d_asks(self._second, self._shop)
        self._what_is_left(self._shop)

    def _c_orders(self, first: Actor, shop: Shop) -> None:
        first.begin()
        if not shop.arrived.wait(PATIENCE_S):
            raise TimeoutError(f"no order reached the shop within {PATIENCE_S:g} s")
        effect = self._effect()
        self._check(
            len(shop.orders) == 1 and (effect.state, effect.tries) == (EffectState.STARTED, 1),
            f"C (process {first.pid}) orders paper: recorded before it was sent, and in the shop's books as order 1",
            pid=first.pid, effect=effect.id,
        )  # fmt: skip

    def _c_is_killed(self, first: Actor, shop: Shop) -> None:
        ended = first.kill()
        shop.reply_lost.set()
        effect = self._effect()
        self._check(
            ended == -signal.SIGKILL and shop.replies == 0 and (effect.state, effect.receipt) == ("started", None),
            "C is killed before the shop's reply is there (SIGKILL): the order stands, and nobody has its receipt",
        )

    def _d_asks(self, second: Actor, shop: Shop) -> None:
        second.begin()
        claimed = second.hear("claimed")
        asked = second.hear("asked")
        told = [
            event.detail["outcome"] for event in self._db.history(self._task_id) if event.kind is Cause.EFFECT_ENDED
        ]
        self._check(
            claimed["took_over"] == "C" and told[:1] == ["unknown"] and shop.found(asked["key"]) is not None,
            f"D (process {second.pid}) takes over, finds the outcome unknown, and asks the shop by the order's key",
            pid=second.pid, token=claimed["token"],
        )  # fmt: skip
        second.hear("completed")

    def _what_is_left(self, shop: Shop) -> None:
        effect, receipt = self._effect(), shop.orders[0][1]
        self._check(
            len(shop.orders) == 1 and (effect.state, effect.tries) == (EffectState.SUCCEEDED, 1)
            and effect.receipt == receipt == self._db.result(self._task_id),
            f"The shop was called once: order {receipt['order']} is there, its receipt is kept, nothing was repeated",
            orders=len(shop.orders), receipt=receipt,
        )  # fmt: skip

    def _effect(self) -> Effect:
        (effect,) = self._db.effects(task_id=self._task_id)
        return effect

    def _buyer(self, holder: str) -> Actor:
        return Actor("buyer", self._place, self._queue, holder, str(TTL_S), str(self._shop.port))
