"""Claims that come twice: the second waits for the first, and is told of the same grants."""

import asyncio

import msgspec
import pytest

from relet.core.errors import Unavailable
from relet.core.model import Handle
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.renew import Renew
from relet.server import doubled
from relet.server.doubled import Doubled
from tests.waiting import PATIENCE_S

CLAIM = Claim(holder="A", queues=["q"], call_id="c-1")
HANDLE = Handle(task_id="t", token=1, secret="s")


class Asked:
    """What came through, and in which order it ended."""

    def __init__(self):
        self.doubled, self.asked, self.ends = Doubled(), [], []

    def ask(self, ask, tenant="t"):
        async def answered(ask):
            self.asked.append(ask)
            end = asyncio.get_running_loop().create_future()
            self.ends.append(end)
            return await end

        return asyncio.ensure_future(self.doubled.once(tenant, ask, answered))


def run(play):
    async def within():
        async with asyncio.timeout(PATIENCE_S):
            await play(Asked())

    asyncio.run(within())


async def rest():
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("error", [None, Unavailable("away")])
def test_the_second_begins_when_the_first_has_ended_and_asks_for_what_that_was_granted(error):
    async def play(desk):
        first, second = desk.ask(CLAIM), desk.ask(CLAIM)
        await rest()
        assert desk.asked == [CLAIM], "it would find nothing yet, and be granted more"
        desk.ends[0].set_result([1]) if error is None else desk.ends[0].set_exception(error)
        await rest()
        assert desk.asked == [CLAIM, msgspec.structs.replace(CLAIM, again=True)]
        desk.ends[1].set_result([1])
        assert await second == [1]
        assert (await asyncio.gather(first, return_exceptions=True)) == [error or [1]]

    run(play)


def test_a_claim_within_a_completion_is_one_too():
    async def play(desk):
        ask = Complete(completions=[], next=CLAIM)
        for _ in range(2):
            desk.ask(ask)
            await rest()
            desk.ends[-1].set_result(None)
            await rest()
        assert [ask.next.again for ask in desk.asked] == [False, True]

    run(play)


def test_calls_of_other_names_and_tenants_and_other_operations_wait_for_nobody():
    async def play(desk):
        other = msgspec.structs.replace(CLAIM, call_id="c-2")
        unnamed = msgspec.structs.replace(CLAIM, call_id=None)
        asks = [CLAIM, other, unnamed, unnamed, Renew(handles=[HANDLE])]
        for ask in asks:
            desk.ask(ask)
        desk.ask(CLAIM, tenant="u")
        await rest()
        assert desk.asked == [*asks, CLAIM]
        for end in desk.ends:
            end.set_result(None)

    run(play)


def test_it_remembers_the_newest_calls_alone(monkeypatch):
    monkeypatch.setattr(doubled, "KEPT_MAX", 2)

    async def play(desk):
        names = ("c-1", "c-2", "c-3", "c-3", "c-1")
        for name in names:
            desk.ask(msgspec.structs.replace(CLAIM, call_id=name))
            await rest()
            desk.ends[-1].set_result(None)
            await rest()
        assert [ask.again for ask in desk.asked] == [False, False, False, True, False]

    run(play)
