"""Ask for the next tasks while results are handed in, where a store answers two requests at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from relet.client.blocking import Client
from relet.core.model import Grant

RESULTS_MIN: Final = 8
"""For fewer, one transaction for both is as fast, and spares the server one."""


class Ahead:
    """A thread of its own, from the first time that it has something to do; belongs to the supervisor's."""

    def __init__(self, client: Client) -> None:
        self._is_of_use = client.backend.answers_side_by_side
        self._thread: ThreadPoolExecutor | None = None

    def begin(self, results: int, claim: Callable[[], list[Grant]]) -> Future[list[Grant]] | None:
        """Begin to claim beside so many results; None where it is better done together with them."""
        if not self._is_of_use or results < RESULTS_MIN:
            return None
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="relet-claim")
        try:
            return self._thread.submit(claim)
        except RuntimeError:  # no thread is to be had just now
            self.close()
            return None

    def close(self) -> None:
        """Nothing is asked for any more; whoever has begun to asks on."""
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None
