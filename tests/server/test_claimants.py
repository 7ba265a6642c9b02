"""Claims that wait in the service: an idle crowd costs little, and a task goes to who has waited longest."""

import asyncio

import msgspec
import pytest

import relet
from relet.core.errors import Forbidden
from relet.core.rules.claim import Claim
from relet.core.rules.outlook import Foreseen
from relet.core.rules.renew import Renew
from relet.core.rules.submit import NewTask, Submit
from relet.core.rules.sweep import Sweep
from relet.server import claimants, lookout
from relet.server.claimants import Claimants, kind_of
from relet.server.news import News
from relet.server.service import Service
from tests.waiting import PATIENCE_S

CROWD = 60


class Desk:
    """Tasks to be had, and how often somebody tried."""

    def __init__(self):
        self.news = News(None)
        self.claimants = Claimants(self.news, self.outlook)
        self.looks, self.worth, self.lapse_ms = [], set(), None
        self.tasks, self.tries, self.served, self.gone = 0, [], [], set()
        self.during = lambda _who: None
        self.trying = self.most_at_once = 0
        self.woken = []
        self.next_s = None

    async def outlook(self, _tenant, names):
        self.looks.append(len(names))
        return Foreseen(queues=[name for name in names if name in self.worth], lapse_ms=self.lapse_ms)

    def wait(self, who, queue="q", **ask):
        async def attempt():
            self.tries.append(who)
            self.during(who)
            found = self.tasks > 0
            self.tasks -= found
            self.trying += 1
            self.most_at_once = max(self.most_at_once, self.trying)
            await asyncio.sleep(0)
            self.trying -= 1
            if found:
                self.served.append(who)
            return [who] if found else []

        async def goes_on():
            self.woken.append(who)
            if who in self.gone:
                raise Forbidden("revoked")
            return True

        async def next_s():
            return self.next_s

        asked = Claim(holder=f"h{who}", queues=[queue], **ask)
        return asyncio.ensure_future(self.claimants.granted("t", asked, 60, attempt, goes_on, next_s))

    async def crowd(self, n=CROWD):
        waiting = [self.wait(who) for who in range(n)]
        await rest()
        self.tries.clear()
        self.woken.clear()
        self.most_at_once = 0
        return waiting

    def change(self, tasks=0):
        self.tasks += tasks
        self.news._wake()


async def rest():
    """As many turns of the loop as a chain of attempts may take."""
    for _ in range(50 * CROWD):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _no_polls(monkeypatch):
    for name in ("POLL_S", "REST_S"):
        monkeypatch.setattr(claimants, name, PATIENCE_S)
    monkeypatch.setattr(lookout, "AGAIN_S", PATIENCE_S)


def run(play):
    async def within():
        async with asyncio.timeout(PATIENCE_S / 2):
            desk = Desk()
            try:
                await play(desk)
            finally:
                desk.news.stop()
                assert desk.claimants._lookout._later is None

    asyncio.run(within())


def test_at_a_change_that_brings_no_task_one_of_a_crowd_tries():
    async def play(desk):
        await desk.crowd()
        for _ in range(3):
            desk.change()
            await rest()
        assert desk.tries == desk.woken == [0, 0, 0]

    run(play)


def test_tasks_go_to_those_who_have_waited_longest_with_few_attempts_in_vain():
    async def play(desk):
        waiting = await desk.crowd()
        desk.change(tasks=40)
        await rest()
        assert sorted(desk.served) == list(range(40))
        assert 8 <= desk.most_at_once <= claimants.TRIES_MAX, "many at once share a commit"
        assert len(desk.tries) - 40 <= claimants.TRIES_MAX
        assert [one.done() for one in waiting] == [True] * 40 + [False] * 20
        desk.tries.clear()
        desk.change()
        await rest()
        assert len(desk.tries) == 1, "after attempts in vain it is one at a time again"

    run(play)


def test_a_change_during_an_attempt_brings_another():
    async def play(desk):
        def submit(_who):
            desk.during = lambda _who: None
            asyncio.get_running_loop().call_soon(desk.change, 1)

        desk.during = submit
        assert await desk.wait(1) == [1]
        assert desk.tries == [1, 1]

    run(play)


def test_a_change_during_an_attempt_in_the_queue_brings_another():
    async def play(desk):
        (waiting, _) = await desk.crowd(2)

        def submit(_who):
            desk.during = lambda _who: None
            asyncio.get_running_loop().call_soon(desk.change, 1)

        desk.during = submit
        desk.change()
        assert await waiting == [0]

    run(play)


def test_what_comes_by_itself_is_tried_for_when_it_is_there(monkeypatch):
    """As where a rate lets the next one through: nobody commits, and nobody tells of it."""
    monkeypatch.setattr(claimants, "POLL_LEAST_S", 0)

    async def play(desk):
        desk.next_s = 0
        waiting = await desk.crowd(3)
        desk.tasks = 2
        assert await asyncio.gather(*waiting[:2]) == [[0], [1]]
        assert not waiting[2].done()

    run(play)


def test_who_may_not_go_on_leaves_its_place_to_the_next():
    async def play(desk):
        waiting = await desk.crowd(3)
        desk.gone = {0, 1}
        desk.change(tasks=1)
        assert await waiting[2] == [2]
        assert desk.tries == [2]
        for one in waiting[:2]:
            with pytest.raises(Forbidden):
                await one

    run(play)


def test_who_is_not_among_the_first_rests_until_it_is():
    """Woken in vain, it does not ask over and over whether it may."""

    async def play(desk):
        await desk.crowd(3)
        (queue,) = desk.claimants._queues.values()
        _, turn, _ = queue.resting
        turn.set()
        await rest()
        assert (desk.tries, turn.is_set()) == ([], False)

    run(play)


def test_many_kinds_poll_the_less_often_and_what_comes_by_itself_is_still_in_time(monkeypatch):
    async def play(desk):
        async def at(next_s):
            async def said():
                return next_s

            return await desk.claimants._poll_s(said)

        monkeypatch.setattr(claimants, "POLL_S", 0.5)
        assert (await at(None), await at(0.3), await at(0)) == (0.5, 0.3, claimants.POLL_LEAST_S)
        desk.claimants._queues.update({b"%d" % n: claimants._Queue("t", ["q"]) for n in range(1_000)})
        assert (await at(None), await at(0.3)) == (25, 0.3)

    run(play)


def test_of_very_many_kinds_those_try_at_a_change_for_whom_there_may_be_something():
    async def play(desk):
        waiting = [desk.wait(who, queue=f"q{who}") for who in range(CROWD)]
        await rest()
        desk.tries.clear()
        del desk.looks[:]
        desk.worth = {"q7", "q50"}
        desk.change(tasks=1)
        await rest()
        assert (desk.looks, desk.tries, desk.served) == ([CROWD], [7, 50], [7])
        assert [who for who, one in enumerate(waiting) if one.done()] == [7]
        desk.wait("new", queue="new")
        await rest()
        assert (desk.looks, desk.tries[2:]) == ([CROWD], ["new"]), "who comes has tried, and asks for nobody else"

    run(play)


def test_of_very_many_kinds_one_tries_for_all_from_the_first_on(monkeypatch):
    """Though nothing has changed since they came: each by itself polls the less often."""
    monkeypatch.setattr(lookout, "AGAIN_S", 0.001)

    async def play(desk):
        for who in range(claimants.KINDS_AT_ONCE + 1):
            desk.wait(who, queue=f"q{who}")
        await rest()
        tried = asyncio.Event()
        del desk.tries[:]
        desk.during = lambda _who: len(desk.tries) == 3 and tried.set()
        await tried.wait()
        assert set(desk.tries) == {0}

    run(play)


def test_of_few_kinds_each_tries_without_a_question():
    async def play(desk):
        for who in range(claimants.KINDS_AT_ONCE):
            desk.wait(who, queue=f"q{who}")
        await rest()
        desk.tries.clear()
        desk.change()
        await rest()
        assert (desk.looks, desk.tries) == ([], list(range(claimants.KINDS_AT_ONCE)))

    run(play)


def test_at_the_end_of_the_service_all_of_very_many_kinds_go_home():
    async def play(desk):
        waiting = [desk.wait(who, queue=f"q{who}") for who in range(CROWD)]
        await rest()
        desk.lapse_ms = 60_000
        desk.change()
        await rest()
        assert desk.claimants._lookout._later is not None
        desk.change()
        desk.news.stop()
        assert await asyncio.gather(*waiting) == [[]] * CROWD

    run(play)


def test_a_repeated_request_is_answered_at_once_beside_a_queue():
    async def play(desk):
        await desk.crowd(3)
        desk.tasks = 2
        assert await desk.wait("again", request_id="r") == ["again"]
        assert await desk.wait("replayed", again=True, call_id="c") == ["replayed"]

    run(play)


def test_who_wants_something_else_does_not_wait_for_it():
    async def play(desk):
        await desk.crowd(3)
        desk.tasks = 1
        assert await desk.wait("other", queue="other") == ["other"]

    run(play)


def test_at_the_end_of_the_service_all_go_home_with_nothing():
    async def play(desk):
        waiting = await desk.crowd()
        desk.tasks = CROWD
        desk.news.stop()
        assert await asyncio.gather(*waiting) == [[]] * CROWD
        assert not desk.claimants._queues

    run(play)


def test_what_is_wanted_is_one_kind_whoever_asks_and_for_however_long():
    one = Claim(holder="A", queues=["q"])
    assert kind_of("t", one) == kind_of("t", Claim(holder="B", queues=["q"], n=3, ttl_ms=5_000, call_id="c"))
    others = [
        kind_of("u", one), kind_of("t", Claim(holder="A", queues=["p"])),
        kind_of("t", Claim(holder="A", queues=["q", "p"])),
        kind_of("t", Claim(holder="A", queues=["q"], kinds=["k"])),
    ]  # fmt: skip
    assert len({kind_of("t", one), *others}) == 5


def test_what_changes_nothing_wakes_nobody(tmp_path):
    """A claim that found nothing would wake whoever waits, and be woken by its claim in turn, for ever."""

    async def play(db):
        service = Service(db.backend, lambda: None)
        told = []
        service.news.tell = lambda: told.append(1)

        async def news_of(ask):
            told.clear()
            answer = await service.ask("default", ask)
            return answer, len(told)

        assert await news_of(Claim(holder="A", queues=["q"])) == ([], 0)
        assert (await news_of(Sweep()))[1] == 0
        assert (await news_of(Submit(queue="q", kind="k", tasks=[NewTask(id="t", input=msgspec.Raw(b"1"))])))[1] == 1
        ((grant,), n) = await news_of(Claim(holder="A", queues=["q"]))
        assert n == 1
        assert (await news_of(Renew(handles=[grant.handle])))[1] == 0
        service.close()

    with relet.connect(f"sqlite:///{tmp_path}/relet.db") as db:
        asyncio.run(play(db))
