"""measure: every figure of a tenant at one instant, as it comes about by verbs."""

from relet.core.rules import measure as rule
from relet.core.rules.measure import MEASURE, Measure
from relet.core.rules.set_queue import SetQueue
from tests.core.durable import effect, parked, start
from tests.core.scene import TTL_MS


def measured(scene):
    before = scene.state()
    answer = scene.backend.store.answer(MEASURE, Measure(), "default")
    assert scene.state() == before, "looking changes nothing"
    return answer


def test_an_empty_store_has_nothing_to_measure(scene):
    empty = measured(scene)
    assert (empty.stats.queues, empty.ready_ms, empty.lapsed, empty.unknown) == ([], {}, None, None)


def test_counts_are_those_of_stats(scene):
    scene.held("live")
    scene.submit("ready")
    parked(scene, id="waiting")
    (queue,) = measured(scene).stats.queues
    assert (queue.queue, queue.live, queue.ready, queue.waiting) == ("q", 1, 1, 1)


def test_the_longest_wait_of_a_queue_is_that_of_its_oldest_task_that_may_be_claimed(scene):
    scene.submit("old")
    scene.pass_ms(700)
    scene.submit("young", priority=5)
    scene.submit("elsewhere", queue="r")
    scene.pass_ms(300)
    assert measured(scene).ready_ms == {"q": 1_000, "r": 300}


def test_a_delayed_task_waits_from_when_it_is_due(scene):
    scene.submit("later", delay_ms=500)
    assert measured(scene).ready_ms == {}
    scene.pass_ms(800)
    assert measured(scene).ready_ms == {"q": 300}


def test_nothing_of_a_paused_queue_waits_for_a_claim(scene):
    scene.submit("t")
    scene.ask(SetQueue(name="q", rate=5, rate_ms=1_000))
    scene.pass_ms(100)
    assert measured(scene).ready_ms == {"q": 100}
    scene.ask(SetQueue(name="q", paused=True))
    assert measured(scene).ready_ms == {}


def test_a_queue_of_which_all_is_leased_has_no_wait(scene):
    scene.held("t")
    scene.pass_ms(100)
    assert measured(scene).ready_ms == {}


def test_of_more_queues_than_are_looked_at_the_first_are(scene, monkeypatch):
    monkeypatch.setattr(rule, "QUEUES", 1)
    scene.submit("a", queue="a")
    scene.submit("b", queue="b")
    found = measured(scene)
    assert (list(found.ready_ms), [queue.queue for queue in found.stats.queues]) == (["a"], ["a", "b"])


def test_a_lease_that_nobody_took_back_is_told_with_how_long_ago_it_expired(scene):
    scene.held("t")
    scene.pass_ms(TTL_MS * 3 // 2)
    assert measured(scene).lapsed.expired_ms_ago == TTL_MS // 2


def test_an_effect_is_unknown_from_the_moment_at_which_that_is_known(scene):
    grant = scene.held("t")
    start(scene, grant)
    assert measured(scene).unknown is None
    scene.pass_ms(TTL_MS)
    scene.claim()
    assert effect(scene).state == "unknown"
    scene.pass_ms(5)
    unknown = measured(scene).unknown
    assert (unknown.count, unknown.age_ms) == (1, 5)
