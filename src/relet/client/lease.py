"""What blocking and awaiting leases share: the facts of a grant, and how a block ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from types import NoneType
from typing import Any, Final

from relet.client.belief import Belief
from relet.core import border
from relet.core.errors import DAMAGED, Invalid, LeaseLost, OutcomeUnknown, Permanent, Temporary, Unavailable
from relet.core.model import LostReason, TakenOver
from relet.core.rules.claim import Claim
from relet.core.trust import Status


class HeldLease:
    """Facts of one lease; no verb, no input or output."""

    def __init__(self, belief: Belief, following: Claim | None = None) -> None:
        self.belief = belief
        self.following = following
        self._input: Any = None
        self._decoded = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} task={self.task_id} token={self.token} holder={self.holder} {self.status}>"

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.belief.grant.handle.task_id

    @property
    def token(self) -> int:
        """The fencing token: larger than that of every lease granted before it."""
        return self.belief.grant.handle.token

    @property
    def handle(self) -> str:
        """The opaque string that proves this lease; give it to another process to go on there."""
        return border.handle_text(self.belief.grant.handle)

    @property
    def queue(self) -> str:
        """The queue that the task was taken from."""
        return self.belief.grant.queue

    @property
    def kind(self) -> str:
        """Which handler the task is for."""
        return self.belief.grant.kind

    @property
    def labels(self) -> dict[str, str]:
        """The task's labels."""
        return self.belief.grant.labels

    @property
    def attempt(self) -> int:
        """1 + failures + losses so far."""
        return self.belief.grant.attempt

    @property
    def holder(self) -> str:
        """Who holds it: a label, never a proof."""
        return self.belief.grant.holder

    @property
    def took_over(self) -> TakenOver | None:
        """The lease before this one, when that one lapsed."""
        return self.belief.grant.took_over

    @property
    def input(self) -> Any:
        """The task's input."""
        if not self._decoded:
            self._input, self._decoded = self._read_input(), True
        return self._input

    def _read_input(self) -> Any:
        return self.belief.input

    @property
    def ttl(self) -> float:
        """Seconds that each heartbeat buys."""
        return self.belief.grant.ttl_ms / 1_000

    @property
    def expires_in(self) -> float:
        """Seconds until the store ends the lease unless it is renewed; 0 once it is over."""
        return self.belief.expires_in

    @property
    def renew_by(self) -> datetime:
        """When the next heartbeat is due; past it the lease is at risk, not lost."""
        return self.belief.renew_by

    @property
    def last_heartbeat(self) -> datetime:
        """When the last heartbeat that the store confirmed was sent."""
        return self.belief.last_heartbeat

    @property
    def status(self) -> Status:
        """held, doubtful or lost, by this machine's own clock."""
        return self.belief.status

    @property
    def lost(self) -> threading.Event:
        """Set when the lease is lost; `with` blocks and workers set it as soon as they know."""
        return self.belief.lost


BY_ITS_HOLDER: Final = (LostReason.CLOSED, LostReason.RELEASED)
"""Reasons that only a holder of this very token can bring about, here or through the handle."""


STORE_AWAY: Final = (Unavailable, OutcomeUnknown)
"""What the store raised, and not the work: it costs no attempt."""

EFFECT_UNKNOWN: Final = "RELET-EFFECT-UNKNOWN"
"""The code of an outcome that another service left unknown, and not the store."""


def is_store_away(raised: BaseException) -> bool:
    """Did the work end because its store gave no answer, alone or within a group.

    Not because the place of artifacts did, or one row is damaged: then the store can record a failure, and whoever
    waits can hear of it.
    """
    if isinstance(raised, BaseExceptionGroup):
        return any(is_store_away(one) for one in raised.exceptions)
    return (
        isinstance(raised, STORE_AWAY)
        and raised.code not in {EFFECT_UNKNOWN, DAMAGED}
        and "place" not in raised.detail
    )


UNREADABLE: Final = "{name} (its text cannot be read: {why})"


class LostInBlock:
    """How a block that keeps a lease ends, decided from what was raised inside it."""

    @staticmethod
    def loss(belief: Belief, raised: BaseException | None) -> LeaseLost | None:
        """The loss to raise at the end of a block; None when the lease was ended by its own holder, or is held.

        It stands in for an exception of the work, never for an order to stop, such as KeyboardInterrupt.
        """
        belief.lose_by_clock()
        if belief.ended is not None or belief.cause is None or belief.cause.reason in BY_ITS_HOLDER:
            return None
        goes_on = isinstance(raised, LeaseLost) or not isinstance(raised, (Exception, NoneType))
        return None if goes_on else belief.cause

    @staticmethod
    @contextmanager
    def told(belief: Belief) -> Iterator[None]:
        """Raise a loss at the end of a block."""
        raised: BaseException | None = None
        try:
            yield
        except BaseException as error:
            raised = error
            raise
        finally:
            if (loss := LostInBlock.loss(belief, raised)) is not None:
                raise loss from raised

    @staticmethod
    def failure(raised: BaseException) -> dict[str, Any]:
        """An exception as the arguments of `fail`; whatever is odd about it, the failure can be told."""
        name = type(raised).__name__
        try:
            said = str(raised)
        except Exception as wrong:  # noqa: BLE001 - an exception whose own text raises
            return {"error": UNREADABLE.format(name=name, why=type(wrong).__name__)}
        if not isinstance(raised, (Permanent, Temporary)):
            return {"error": f"{name}: {said}" if said else name}
        told: dict[str, Any] = {"error": said or name, "retry": not isinstance(raised, Permanent)}
        try:
            told["code"] = border.maybe_name("code", raised.code)
            if isinstance(raised, Temporary):
                told["delay"] = border.maybe_duration_ms("delay", raised.delay)
                told["delay"] = None if told["delay"] is None else told["delay"] / 1_000
        except Invalid as wrong:
            told = {"error": f"{said or name} (and {wrong})", "retry": told["retry"]}
        return told


LEFT_OPEN = (
    "the block of task {task_id} ended without complete, fail or release; the lease was released. "
    "End it by a verb, so that the task is not run again by surprise"
)
