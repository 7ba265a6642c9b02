"""Finished tasks past the retention of their queue leave, a batch at a time, beside a worker's other work."""

from __future__ import annotations

import random
from typing import Final

from relet.client.blocking import Client
from relet.client.redacting import log_named
from relet.core.errors import Forbidden
from relet.core.rules.prune import Prune

log = log_named("relet.worker")

LOOK_EVERY_S: Final = 60.0


class Retention:
    """When one worker looks next, and where it goes on."""

    def __init__(self, client: Client, now: float) -> None:
        self._client = client
        # Not all workers of a host that started together at once.
        self._look_at = now + LOOK_EVERY_S * random.random()
        self._after = 0

    def tick(self, now: float) -> None:
        """One batch, if it is time; while there is more, the next one at the next tick."""
        if now < self._look_at:
            return
        try:
            batch = self._client.backend.call(Prune(after=self._after))
        except Forbidden:
            # A key that works need not remove anything: a service sees to that itself.
            self._look_at = float("inf")
            return
        self._after = batch.cursor or 0
        if batch.cursor is None:
            self._look_at = now + LOOK_EVERY_S
        if batch.ids:
            log.info("%d finished tasks were past their retention, and were removed", len(batch.ids))
