"""turns: whose turn it is in a queue with shares, one after the other, however many tasks each of them has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from relet.core.model import Instants
from relet.core.tx import QueueRow, TaskRow, Tx

WITHOUT_SHARE: Final = "\x01"
"""Tasks that were submitted without a share are one, under a key that no caller can give."""
START: Final = ""
"""Before every share."""


class Round:
    """Walks through the shares from the one after the last served, and once more from the start to its end.

    A share is its own queue of one turn: its task of the highest priority, then the oldest. It ends when it has
    gone from start to end without anybody being served.
    """

    def __init__(self, queue: QueueRow) -> None:
        assert queue.shared_from is not None, "a queue without shares knows no turns"
        self._queue, self._from = queue, queue.shared_from
        self._after = queue.last_share or START
        self._over = False
        self._served = self._after != START
        """Was anybody served since the start; a round that did not begin there is not judged by it."""

    async def next(self, tx: Tx, kinds: Sequence[str] | None, wanted: int) -> tuple[list[TaskRow], Instants]:
        """The first tasks of the next shares, at most `wanted` of them; none when the round is at its end."""
        while True:
            if self._over:
                if not self._served:
                    return [], await tx.instants()
                self._after, self._over, self._served = START, False, False
            tasks, at = await self._page(tx, kinds, wanted)
            if tasks:
                self._after = tasks[-1].share or WITHOUT_SHARE
                return tasks, at

    async def _page(self, tx: Tx, kinds: Sequence[str] | None, wanted: int) -> tuple[list[TaskRow], Instants]:
        queue = self._queue
        tasks, at = await tx.lock_turns(queue.name, kinds, self._after, queue.share_concurrency, wanted)
        self._over = len(tasks) < wanted
        if self._after == START and (old := await tx.lock_before_shares(queue.name, kinds, self._from)) is not None:
            if not tasks or tasks[0].share != WITHOUT_SHARE:
                tasks.insert(0, old)
            elif _order(old) < _order(tasks[0]):
                tasks[0] = old
            at = await tx.instants()
        return tasks, at

    def served(self, task: TaskRow) -> None:
        """This task was taken: the next turn is of the share after its own, in later claims as well."""
        self._served, self._queue.last_share = True, task.share or WITHOUT_SHARE


async def are_all_full(tx: Tx, queue: QueueRow, kinds: Sequence[str] | None = None) -> bool:
    """Has the queue ready tasks whose turn it might be, each of a share that is at its limit; for whoever looks."""
    if queue.share_concurrency is None or queue.shared_from is None:
        return False
    if await tx.lock_before_shares(queue.name, kinds, queue.shared_from) is not None:
        return False
    with_room, _ = await tx.lock_turns(queue.name, kinds, START, queue.share_concurrency, 1)
    return not with_room and bool((await tx.lock_turns(queue.name, kinds, START, None, 1))[0])


def _order(task: TaskRow) -> tuple[int, int]:
    return -task.priority, task.seq
