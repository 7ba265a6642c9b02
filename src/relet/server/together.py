"""Questions that come about the same time, asked as one: a crowd costs one call, and nobody waits for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from relet.core.errors import DAMAGED, OutcomeUnknown, Unavailable

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")

TURNS_MAX: Final = 10
"""Of the loop, in which more may come before a call begins; each as long as what else is ready in it."""


class _Asked(NamedTuple, Generic[Q, A]):
    question: Q
    answered: asyncio.Future[A]


class Together(Generic[Q, A]):
    """One kind of question, in the order of their coming.

    A call begins after all that it answers were asked, so that whatever was true before a question is seen by its
    answer. What a call raises is raised for all whom it would have answered when it is the store that was away; else
    their questions are asked again in halves, until it is one that it is raised for.
    """

    def __init__(
        self, ask: Callable[[Sequence[Q]], Awaitable[Sequence[A]]], most: int, *,
        weight: Callable[[Q], int] = lambda _question: 1, side_by_side: int = 1,
    ) -> None:  # fmt: skip
        """`most` bounds what one call takes, by `weight`; `side_by_side` calls may be under way at one time."""
        self._ask, self._most, self._weight, self._side_by_side = ask, most, weight, side_by_side
        self._waiting: deque[_Asked[Q, A]] = deque()
        self._calls: set[asyncio.Task[None]] = set()
        self._under_way = 0
        """Of the calls, those that will look for questions once more."""

    async def answer(self, question: Q) -> A:
        """The answer to one question. Raises what its call raises."""
        answered: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Asked(question, answered))
        if self._under_way < self._side_by_side:
            self._under_way += 1
            call = asyncio.create_task(self._go_on())
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
        return await answered

    async def _go_on(self) -> None:
        try:
            while self._waiting:
                await self._gather()
                if taken := self._take():
                    await self._answer(taken)
        finally:
            # At once, not when the task is told of as done: who asks in between would wait for a call that has ended.
            self._under_way -= 1

    async def _gather(self) -> None:
        """Let those ask who are about to: until nobody did for one turn of the loop.

        A call costs as much as two dozen questions within it, and a crowd that is answered together asks
        together.
        """
        for _ in range(TURNS_MAX):
            waiting = len(self._waiting)
            await asyncio.sleep(0)
            if len(self._waiting) == waiting:
                return

    async def _answer(self, taken: Sequence[_Asked[Q, A]]) -> None:
        try:
            answers = await self._answers([asked.question for asked in taken])
        except Exception as wrong:  # noqa: BLE001 - it is theirs who asked, and raised where they wait
            if len(taken) > 1 and not _is_of_all(wrong):
                for some in _halves(taken):
                    await asyncio.sleep(0)  # a call may not take a turn of its own, and all of these would be one
                    await self._answer(some)
                return
            for asked in taken:
                if not asked.answered.done():
                    asked.answered.set_exception(wrong)
        except asyncio.CancelledError:
            for asked in taken:
                asked.answered.cancel()
            raise
        else:
            for asked, answer in zip(taken, answers, strict=True):
                if not asked.answered.done():
                    asked.answered.set_result(answer)

    async def _answers(self, questions: Sequence[Q]) -> Sequence[A]:
        answers = await self._ask(questions)
        if len(answers) != len(questions):
            raise RuntimeError(f"{len(questions)} questions were asked, and {len(answers)} answers came")
        return answers

    def _take(self) -> list[_Asked[Q, A]]:
        """The next ones; whoever has gone meanwhile is not asked for."""
        taken: list[_Asked[Q, A]] = []
        room = self._most
        while self._waiting:
            asked = self._waiting[0]
            if not asked.answered.done():
                room -= self._weight(asked.question)
                if taken and room < 0:
                    break
                taken.append(asked)
            self._waiting.popleft()
        return taken


def _halves(many: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Both, in order."""
    half = len(many) // 2
    return many[:half], many[half:]


def _is_of_all(wrong: Exception) -> bool:
    """Does it say nothing of one question: the store was away, or gave no answer. Else it may be one row's fault."""
    return isinstance(wrong, (Unavailable, OutcomeUnknown)) and wrong.code != DAMAGED
