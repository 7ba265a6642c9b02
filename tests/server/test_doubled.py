"""Claims that come twice: the second waits for the first, and is told of the same grants."""

import asyncio

import msgspec
import pytest

from relet.core.access import SCOPES_OF, Access, Role
from relet.core.errors import LeaseLost, Unavailable
from relet.core.model import Handle, LostReason
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.renew import Renew
from relet.server import doubled
from relet.server.counted import Counted
from relet.server.doubled import Doubled
from tests.waiting import PATIENCE_S

CLAIM = Claim(holder="A", queues=["q"], call_id="c-1")
HANDLE = Handle(task_id="t", token=1, secret="s")


class Asked:
    """What came through, and in which order it ended."""

    def __init__(self):
        self.doubled, self.asked, self.ends = Doubled(Counted(2, 10, "claims that wait")), [], []
        self.gone = set()

    def ask(self, ask, tenant="t", key="k", who=None):
        async def answered(ask):
            self.asked.append(ask)
            end = asyncio.get_running_loop().create_future()
            self.ends.append(end)
            return await end

        async def goes_on():
            return who not in self.gone

        access = Access(key_id=key, name=key, tenant=tenant, role=Role.WORKER, scopes=SCOPES_OF[Role.WORKER])
        return asyncio.ensure_future(self.doubled.once(access, ask, answered, goes_on))


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


def test_calls_of_other_names_tenants_and_keys_and_other_operations_wait_for_nobody():
    async def play(desk):
        other = msgspec.structs.replace(CLAIM, call_id="c-2")
        unnamed = msgspec.structs.replace(CLAIM, call_id=None)
        asks = [CLAIM, other, unnamed, unnamed, Renew(handles=[HANDLE])]
        for ask in asks:
            desk.ask(ask)
        desk.ask(CLAIM, tenant="u")
        desk.ask(CLAIM, key="another")
        await rest()
        assert desk.asked == [*asks, CLAIM, CLAIM]
        for end in desk.ends:
            end.set_result(None)

    run(play)


def test_a_name_that_is_used_again_after_its_grant_has_ended_is_granted_another():
    async def play(desk):
        for again, answers in [(False, [LeaseLost("it was completed", reason=LostReason.CLOSED), [2]]),
                               (True, [LeaseLost("it was completed", reason=LostReason.CLOSED)])]:  # fmt: skip
            desk.ask(CLAIM)
            await rest()
            desk.ends[-1].set_result([1])
            await rest()
            second = desk.ask(msgspec.structs.replace(CLAIM, again=again))
            for answer in answers:
                await rest()
                end = desk.ends[-1]
                end.set_exception(answer) if isinstance(answer, Exception) else end.set_result(answer)
            if again:
                with pytest.raises(LeaseLost):
                    await second
            else:
                assert await second == [2]
                assert not desk.asked[-1].again
            desk.doubled._ended.clear()

    run(play)


def test_nothing_is_claimed_for_who_has_gone_while_it_waited(monkeypatch):
    async def play(desk):
        first, second = desk.ask(CLAIM), desk.ask(CLAIM, who="gone")
        await rest()
        desk.gone.add("gone")
        desk.ends[0].set_result([])
        with pytest.raises(Unavailable, match="has gone"):
            await second
        assert (await first, desk.asked) == ([], [CLAIM])
        # And it is noticed while the first goes on.
        monkeypatch.setattr(doubled, "LOOK_S", 0)
        other = msgspec.structs.replace(CLAIM, call_id="c-2")
        desk.ask(other)
        await rest()
        with pytest.raises(Unavailable, match="has gone"):
            await desk.ask(other, who="gone")

    run(play)


def test_those_who_wait_for_a_first_are_counted_among_those_who_wait():
    async def play(desk):
        desk.ask(CLAIM)
        await rest()
        waiting = [desk.ask(CLAIM) for _ in range(2)]
        await rest()
        with pytest.raises(Unavailable, match="2 claims that wait open"):
            await desk.ask(CLAIM)
        desk.ends[0].set_result([])
        await rest()
        for end in desk.ends[1:]:
            end.set_result([])
        await asyncio.gather(*waiting)

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


def test_a_call_that_waits_is_not_forgotten_however_many_come_and_go(monkeypatch):
    monkeypatch.setattr(doubled, "KEPT_MAX", 2)

    async def play(desk):
        first = desk.ask(CLAIM)
        await rest()
        for n in range(4):
            desk.ask(msgspec.structs.replace(CLAIM, call_id=f"other-{n}"))
            await rest()
            desk.ends[-1].set_result([])
            await rest()
        second = desk.ask(CLAIM)
        await rest()
        assert len(desk.asked) == 5, "it waits for the first"
        desk.ends[0].set_result([1])
        await rest()
        desk.ends[-1].set_result([1])
        assert await asyncio.gather(first, second) == [[1], [1]]
        assert (desk.doubled._under_way, len(desk.doubled._ended)) == ({}, 2)

    run(play)
