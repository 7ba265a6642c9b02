"""One question for all who wait for different tasks: who is stirred, and when it is asked again."""

import asyncio

import pytest

from relet.core.errors import Unavailable
from relet.core.rules.claim import Claim
from relet.core.rules.outlook import Foreseen
from relet.core.wire import encode
from relet.server.claimants import KINDS_AT_ONCE
from relet.server.lookout import AGAIN_S, LEAST_S, QUEUES_MAX, Lookout
from tests.server.served import ask
from tests.server.test_limits import until
from tests.waiting import PATIENCE_S


class Kind:
    """Somebody who waits."""

    def __init__(self, *names, tenant="t"):
        self.tenant, self.names, self.stirred = tenant, names, 0

    def stir(self):
        self.stirred += 1


class Hill:
    """A lookout, what can be seen from it, and when it looks."""

    def __init__(self, *waiting):
        self.waiting, self.ready, self.lapse_ms, self.error = list(waiting), {}, None, None
        self.asked, self.asking, self.most_at_once = [], 0, 0
        self.during = lambda: None
        self.lookout = Lookout(self.ask, lambda: self.waiting)

    async def ask(self, tenant, names):
        self.asked.append((tenant, list(names)))
        self.asking += 1
        self.most_at_once = max(self.most_at_once, self.asking)
        self.during()
        for _ in range(5):
            await asyncio.sleep(0)
        self.asking -= 1
        if self.error is not None:
            raise self.error
        return Foreseen(queues=[one for one in names if one in self.ready.get(tenant, ())], lapse_ms=self.lapse_ms)

    async def look(self):
        self.lookout.look()
        await self.lookout._looking
        return [one.stirred for one in self.waiting]


class Timer:
    """One that was set, by a clock that stands."""

    def __init__(self, seconds, call, timers):
        self.seconds, self.call, self._timers = seconds, call, timers
        timers.append(self)

    def when(self):
        return NOW + self.seconds

    def cancel(self):
        self._timers.remove(self)

    def fire(self):
        self.cancel()
        self.call()


NOW = 1_000.0


def run(play):
    async def within():
        timers, loop = [], asyncio.get_running_loop()
        loop.call_later = lambda seconds, call: Timer(seconds, call, timers)
        loop.time, usual = lambda: NOW, loop.time
        try:
            await play(timers)
        finally:
            loop.time = usual

    asyncio.run(within())


def test_those_are_stirred_for_whom_there_may_be_something():
    async def play(_timers):
        hill = Hill(Kind("a"), Kind("b", "c"), Kind("d"), Kind("a", tenant="u"), Kind())
        hill.ready = {"t": ["c", "d"], "u": []}
        assert await hill.look() == [0, 1, 1, 0, 1], "who waits for one task by its id is not looked out for"
        assert hill.asked == [("t", ["a", "b", "c", "d"]), ("u", ["a"])]

    run(play)


def test_what_changes_during_a_look_is_looked_at_by_another_and_no_more_than_one():
    async def play(_timers):
        hill = Hill(Kind("a"))

        def change():
            hill.during = lambda: None
            hill.ready = {}
            for _ in range(3):
                hill.lookout.look()

        hill.during = change
        hill.ready = {"t": ["a"]}
        await hill.look()
        assert (len(hill.asked), hill.most_at_once) == (2, 1)

    run(play)


def test_very_many_queues_are_asked_for_in_several_questions():
    async def play(_timers):
        hill = Hill(*(Kind(f"{n:04}") for n in range(2 * QUEUES_MAX + 1)))
        hill.ready = {"t": ["0000", f"{2 * QUEUES_MAX:04}"]}
        stirred = await hill.look()
        assert [n for n, one in enumerate(stirred) if one] == [0, 2 * QUEUES_MAX]
        assert [len(names) for _, names in hill.asked] == [QUEUES_MAX, QUEUES_MAX, 1]

    run(play)


def test_when_a_lease_lapses_one_tries_though_nobody_tells():
    async def play(timers):
        hill = Hill(Kind("a"), Kind("b"))
        hill.lapse_ms = 300
        assert await hill.look() == [0, 0]
        (timer,) = timers
        assert timer.seconds == 0.3
        hill.lapse_ms = 1
        timer.fire()
        await hill.lookout._looking
        assert [one.stirred for one in hill.waiting] == [1, 0], "one closes what has lapsed, for all of them"
        assert [one.seconds for one in timers] == [LEAST_S]
        hill.lookout.rest()
        hill.lapse_ms = 0
        assert await hill.look() == [2, 0], "at once, where it has lapsed already"
        assert [one.seconds for one in timers] == [AGAIN_S]

    run(play)


def test_who_waits_for_one_task_by_its_id_closes_nothing_for_others():
    async def play(timers):
        hill = Hill(Kind(), Kind("a"), Kind("b"))
        hill.lapse_ms = 0
        assert await hill.look() == [1, 1, 0], "the first as at any change"

    run(play)


@pytest.mark.parametrize("lapse_ms", [None, 60_000])
def test_now_and_then_one_tries_as_a_dead_holder_tells_nobody(lapse_ms):
    async def play(timers):
        hill = Hill(Kind("a"), Kind("b"))
        hill.lapse_ms = lapse_ms
        for n in range(3):
            assert await hill.look() == [n, 0]
            (timer,) = timers
            assert timer.seconds == AGAIN_S
            timer.fire()
            await hill.lookout._looking

    run(play)


def test_changes_do_not_put_off_what_comes_by_itself():
    async def play(timers):
        hill = Hill(Kind("a"))
        hill.lapse_ms = 200
        await hill.look()
        (first,) = timers
        hill.lapse_ms = 60_000
        await hill.look()
        assert timers == [first]
        hill.lapse_ms = 100
        await hill.look()
        assert [one.seconds for one in timers] == [0.1]

    run(play)


def test_of_several_tenants_the_lapse_that_comes_first_counts():
    async def play(timers):
        hill = Hill(Kind("a"), Kind("a", tenant="u"))
        lapses = iter([300, 200])

        def next_lapse():
            hill.lapse_ms = next(lapses)

        hill.during = next_lapse
        await hill.look()
        assert [one.seconds for one in timers] == [0.2]

    run(play)


def test_an_error_of_one_tenant_is_not_in_the_way_of_others():
    async def play(timers):
        hill = Hill(Kind("a"), Kind("a", tenant="u"))
        hill.ready = {"t": ["a"], "u": ["a"]}

        def fail_for_one():
            hill.error = Unavailable("damaged") if hill.asked[-1][0] == "t" else None

        hill.during = fail_for_one
        assert await hill.look() == [0, 1]
        assert [one.seconds for one in timers] == [AGAIN_S]

    run(play)


def test_whatever_goes_wrong_in_a_look_there_is_another():
    async def play(timers):
        hill = Hill(Kind("a"))
        hill.error = ValueError("a bug")
        with pytest.raises(ValueError, match="a bug"):
            await hill.look()
        assert [one.seconds for one in timers] == [AGAIN_S]

    run(play)


def test_a_store_that_is_away_stirs_nobody_and_one_tries_later():
    async def play(timers):
        hill = Hill(Kind("a"), Kind())
        hill.error = Unavailable("away")
        assert await hill.look() == [0, 0]
        (timer,) = timers
        assert timer.seconds == AGAIN_S
        hill.error = None
        timer.fire()
        await hill.lookout._looking
        assert [one.stirred for one in hill.waiting] == [1, 1]

    run(play)


def test_it_is_up_while_it_looks_and_until_it_looks_again():
    async def play(timers):
        hill = Hill(Kind("a"))
        assert not hill.lookout.is_up
        hill.lookout.look()
        assert hill.lookout.is_up
        await hill.lookout._looking
        assert hill.lookout.is_up
        hill.waiting.clear()
        timers[0].fire()
        await hill.lookout._looking
        assert (hill.lookout.is_up, timers) == (False, [])

    run(play)


def test_when_nobody_waits_any_more_it_rests():
    async def play(timers):
        hill = Hill(Kind("a"))
        await hill.look()
        hill.waiting.clear()
        await hill.look()
        assert timers == []

    run(play)


def test_where_nobody_is_looked_out_for_nothing_is_asked_later():
    async def play(timers):
        hill = Hill(Kind("a"))
        hill.lapse_ms = 700
        await hill.look()
        hill.lookout.rest()
        hill.lookout.rest()
        assert timers == []

    run(play)


@pytest.mark.parametrize(("waiting", "later"), [((), 0), ((Kind(),), 1)])
def test_where_nobody_waits_for_a_queue_the_store_is_not_asked(waiting, later):
    async def play(timers):
        hill = Hill(*waiting)
        await hill.look()
        assert (hill.asked, len(timers)) == ([], later)

    run(play)


def test_of_many_who_wait_for_different_queues_the_one_is_granted_for_whom_there_is_a_task(served, monkeypatch):
    key, asked, seen = served.key(), served.service.ask, []

    async def seeing(tenant, question, *more):
        seen.append(type(question).__name__)
        return await asked(tenant, question, *more)

    monkeypatch.setattr(served.service, "ask", seeing)

    async def play():
        served.service.news.begin()
        await until(lambda: served.service.news.version)  # what was there before its first look counts as a change
        waits = [
            asyncio.create_task(ask(
                served.app, "POST", "/v1/claim?wait=30", key=key, leaves=asyncio.Event(),
                body=encode(Claim(holder="h", queues=[f"q{n}"])),
            ))
            for n in range(2 * KINDS_AT_ONCE)
        ]  # fmt: skip
        await until(lambda: seen.count("Glance") == len(waits))
        del seen[:]
        served.db.submit("q13", id="t")
        granted = await asyncio.wait_for(waits[13], PATIENCE_S)
        served.service.news.stop()
        others = await asyncio.gather(*waits[:13], *waits[14:])
        return granted, others

    granted, others = served.loop.run_until_complete(play())
    assert [grant["handle"]["task_id"] for grant in granted.json] == ["t"]
    assert {reply.body for reply in others} == {b"[]"}
    assert "Outlook" in seen
    assert seen.count("Claim") <= 2, "nobody tried in vain, but whoever waited in front of all"
