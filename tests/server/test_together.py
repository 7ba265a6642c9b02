"""Questions that are asked together: none is left waiting, or answered by what was begun before it."""

import asyncio

import pytest

from relet.core.errors import Unavailable
from relet.core.model import Handle
from relet.core.rules.renew import Renew, Renewed
from relet.server import renewals
from relet.server.renewals import Renewals
from relet.server.together import TURNS_MAX, Together
from tests.waiting import PATIENCE_S


class Called:
    """Calls that end when they are told to, and what was asked by each."""

    def __init__(self, most=10, **options):
        self.calls, self._ends = [], []
        self.together = Together(self._call, most, **options)

    async def _call(self, questions):
        end = asyncio.get_running_loop().create_future()
        self.calls.append(list(questions))
        self._ends.append(end)
        await end
        return [question * 10 for question in questions]

    def end(self, which, error=None):
        if error is None:
            self._ends[which].set_result(None)
        else:
            self._ends[which].set_exception(error)

    def ask(self, *questions):
        return [asyncio.ensure_future(self.together.answer(question)) for question in questions]


def run(play):
    async def within():
        async with asyncio.timeout(PATIENCE_S):
            return await play()

    return asyncio.run(within())


async def rest():
    for _ in range(10):
        await asyncio.sleep(0)


def test_who_asks_in_the_turn_in_which_the_last_call_ends_is_answered():
    """After its last look for questions, and before the loop has told that its task is done."""

    async def play():
        async def said(questions):
            return questions

        together = Together(said, 10)
        first = asyncio.create_task(together.answer(1))
        await asyncio.sleep(0)
        (call,) = together._calls
        while not call.done():  # noqa: ASYNC110 - the very turn, which nothing tells of
            await asyncio.sleep(0)
        assert call in together._calls
        return await together.answer(2), await first

    assert run(play) == (2, 1)


def test_a_crowd_that_comes_turn_by_turn_is_asked_for_together():
    """As connections are read one after the other: a call for the first would cost as much as one for all."""

    async def play():
        called = Called()
        asked = []
        for question in range(5):
            asked += called.ask(question)
            await asyncio.sleep(0)
        assert called.calls == []
        await rest()
        assert called.calls == [[0, 1, 2, 3, 4]]
        called.end(0)
        assert await asyncio.gather(*asked) == [0, 10, 20, 30, 40]

    run(play)


def test_a_crowd_without_end_keeps_nobody_waiting():
    async def play():
        called = Called(most=1_000)
        for question in range(TURNS_MAX + 3):
            called.ask(question)
            await asyncio.sleep(0)
        assert [call[0] for call in called.calls] == [0]
        called.end(0)
        await rest()
        called.end(1)
        await rest()

    run(play)


def test_what_comes_during_a_call_is_asked_together_after_it():
    """Never answered by the call that is under way: it may have looked before."""

    async def play():
        called = Called()
        first = called.ask(1)
        await rest()
        later = called.ask(2, 3)
        await rest()
        assert called.calls == [[1]]
        called.end(0)
        await rest()
        assert called.calls == [[1], [2, 3]]
        called.end(1)
        assert await asyncio.gather(*first, *later) == [10, 20, 30]

    run(play)


def test_what_a_call_raises_each_of_its_own_is_told_and_the_next_goes_on():
    async def play():
        called = Called()
        first = called.ask(1, 2)
        await rest()
        later = called.ask(3)
        called.end(0, Unavailable("away"))
        for one in first:
            with pytest.raises(Unavailable):
                await one
        await rest()
        called.end(1)
        assert await later[0] == 30

    run(play)


def test_the_many_calls_for_one_bad_question_leave_the_loop_turns_between_them():
    """A call may be over before it is awaited, and then nobody else would have a turn until all are."""

    async def play():
        calls, most = 0, 0

        async def said(questions):
            nonlocal calls, most
            calls += 1
            most = max(most, calls)
            if 7 in questions:
                raise ValueError(7)
            return questions

        async def others():
            nonlocal calls
            while True:
                calls = 0
                await asyncio.sleep(0)

        together = Together(said, 100)
        beside = asyncio.create_task(others())
        answers = await asyncio.gather(*map(together.answer, range(64)), return_exceptions=True)
        beside.cancel()
        assert [n for n, answer in enumerate(answers) if answer != n] == [7]
        assert most <= 2

    run(play)


def test_a_call_takes_no_more_than_its_most_but_for_one_that_is_larger():
    async def play():
        called = Called(10, weight=lambda question: question)
        asked = called.ask(4, 6, 1, 11, 2)
        for n in range(4):
            await rest()
            called.end(n)
        await asyncio.gather(*asked)
        assert called.calls == [[4, 6], [1], [11], [2]]

    run(play)


@pytest.mark.parametrize("wrong", [ValueError("a bad row"), Unavailable("damaged", code="RELET-DAMAGED")])
def test_one_bad_row_is_told_to_who_asked_for_it_and_the_others_have_their_answers(wrong):
    async def play():
        calls = []

        async def said(questions):
            calls.append(list(questions))
            if 6 in questions:
                raise wrong
            return questions

        together = Together(said, 100)
        told = await asyncio.gather(*(together.answer(n) for n in range(8)), return_exceptions=True)
        assert told == [0, 1, 2, 3, 4, 5, wrong, 7]
        assert calls == [[*range(8)], [0, 1, 2, 3], [4, 5, 6, 7], [4, 5], [6, 7], [6], [7]]

    run(play)


def test_answers_that_are_too_few_leave_nobody_waiting():
    async def play():
        async def said(questions):
            return questions[1:]

        together = Together(said, 10)
        told = await asyncio.gather(*(together.answer(n) for n in range(3)), return_exceptions=True)
        assert [type(one) for one in told] == [RuntimeError] * 3

    run(play)


def test_who_waits_for_a_call_that_is_cancelled_is_let_go():
    async def play():
        called = Called()
        waiting = called.ask(1, 2)
        await rest()
        (call,) = called.together._calls
        call.cancel()
        told = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in told] == [asyncio.CancelledError] * 2

    run(play)


def test_nobody_asks_for_who_has_gone():
    async def play():
        called = Called()
        first = called.ask(1)
        await rest()
        gone, stays = called.ask(2, 3)
        await rest()
        gone.cancel()
        await rest()
        called.end(0)
        await rest()
        assert called.calls == [[1], [3]]
        stays.cancel()
        await rest()
        called.end(1)
        await rest()
        assert await first[0] == 10
        assert not called.together._calls

    run(play)


@pytest.mark.parametrize("error", [None, Unavailable("away")])
def test_who_goes_during_its_call_takes_nothing_from_the_others_of_it(error):
    async def play():
        called = Called()
        gone, stays = called.ask(1, 2)
        await rest()
        gone.cancel()
        await rest()
        called.end(0, error)
        told = (await asyncio.gather(stays, return_exceptions=True))[0]
        assert told == (error or 20)

    run(play)


def test_where_a_store_answers_side_by_side_a_slow_call_is_waited_for_by_its_own_alone():
    async def play():
        called = Called(side_by_side=2)
        slow = called.ask(1)
        await rest()
        other = called.ask(2)
        await rest()
        called.end(1)
        assert await other[0] == 20
        assert not slow[0].done()
        called.end(0)
        await slow[0]

    run(play)


def handle(n):
    return Handle(task_id="t", token=n, secret="s")


def test_heartbeats_of_one_tenant_share_a_call_and_each_has_its_own_answers():
    calls = []

    async def call(tenant, ask, patience_ms):
        calls.append((tenant, [one.token for one in ask.handles], ask.ttl_ms, patience_ms))
        await asyncio.sleep(0)
        return [Renewed(left_ms=one.token) for one in ask.handles]

    async def play():
        renewals = Renewals(call, 1)
        asked = [
            ("a", Renew(handles=[handle(1), handle(2)]), 50), ("a", Renew(handles=[]), 5_000),
            ("b", Renew(handles=[handle(3)]), 70), ("a", Renew(handles=[handle(4)], ttl_ms=9_000), 60),
            ("a", Renew(handles=[handle(5)]), 80),
        ]  # fmt: skip
        return await asyncio.gather(*(renewals.answer(*one) for one in asked))

    told = run(play)
    assert [[one.left_ms for one in answers] for answers in told] == [[1, 2], [], [3], [4], [5]]
    # The most patient one counts; another tenant's, and one with a time of its own, go by themselves.
    assert sorted(calls, key=str) == [
        ("a", [1, 2, 5], None, 5_000), ("a", [4], 9_000, 60), ("b", [3], None, 70),
    ]  # fmt: skip


def test_many_heartbeats_of_one_request_let_those_of_others_in_between(monkeypatch):
    monkeypatch.setattr(renewals, "ITEMS_MAX", 2)
    calls = []

    async def call(_tenant, ask, _patience_ms):
        calls.append([one.token for one in ask.handles])
        await asyncio.sleep(0)
        return [Renewed(left_ms=one.token) for one in ask.handles]

    async def play():
        shared = Renewals(call, 1)
        many = asyncio.ensure_future(shared.answer("a", Renew(handles=[handle(n) for n in range(5)]), 50))
        await asyncio.sleep(0)
        other = await shared.answer("a", Renew(handles=[handle(9)]), 50)
        assert not many.done()
        return other, await many

    other, many = run(play)
    assert ([one.left_ms for one in other], [one.left_ms for one in many]) == ([9], [0, 1, 2, 3, 4])
    assert max(map(len, calls)) == 2
