"""A loss, delivered into an `async with` block: its task is cancelled, and the loss raised at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from relet.client.belief import Belief
from relet.client.lease import LostInBlock
from relet.core.errors import LeaseLost


class BlockGuard:
    """Cancels the task that runs a block when its lease is lost, and takes the cancel back at the block's end."""

    def __init__(self, belief: Belief) -> None:
        self._belief = belief
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self._before = 0

    def enter(self) -> None:
        """Watch over the running task from now on."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._cancelled = False
        self._before = 0 if self._task is None else self._task.cancelling()
        self._tell: Callable[[LeaseLost], None] = lambda _lost: self._call(loop)
        self._belief.on_lost.append(self._tell)
        if self._belief.is_lost:
            self._call(loop)  # too late to be told, and no reason to begin

    def leave(self, raised: BaseException | None) -> bool:
        """Stop watching. Raises the loss in place of our own cancel; True when that cancel is to go no further."""
        self._belief.untell(self._tell)
        task, self._task = self._task, None
        others = task.uncancel() > self._before if self._cancelled and task is not None else False
        # A cancel that somebody else asked for, as well or instead, goes on.
        ours = self._cancelled and not others and isinstance(raised, asyncio.CancelledError)
        if (loss := LostInBlock.loss(self._belief, None if ours else raised)) is not None:
            raise loss from raised
        return ours

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:
            return  # the loop has ended, and with it the work

    def _cancel(self) -> None:
        if self._task is not None and not self._cancelled:
            self._cancelled = True
            self._task.cancel()
