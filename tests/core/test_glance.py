"""glance: whoever waits for work is told whether there is some, and when there may be, and changes nothing."""

from relet.core.rules.glance import Glance
from relet.core.rules.set_queue import SetQueue
from tests.core.scene import TTL_MS


def glance(scene, **options):
    before = scene.state()
    seen = scene.ask(Glance(queues=["q"], **options))
    assert scene.state() == before
    return seen.ready, seen.next_ms


def test_a_ready_task_is_seen_by_whoever_has_its_kind(scene):
    assert glance(scene) == (False, None)
    scene.submit("t", kind="k")
    assert glance(scene) == (True, None)
    assert glance(scene, kinds=["k"]) == (True, None)
    assert glance(scene, kinds=["other"]) == (False, None)


def test_a_delay_and_a_lease_tell_when_they_end(scene):
    scene.submit("later", delay_ms=500)
    assert glance(scene) == (False, 500)
    scene.held("t", ttl_ms=TTL_MS)
    scene.pass_ms(500)
    assert glance(scene) == (True, 0)
    scene.claim()
    assert glance(scene)[0] is False


def test_a_paused_queue_has_nothing_to_give(scene):
    scene.submit("t", delay_ms=5)
    scene.ask(SetQueue(name="q", paused=True))
    assert glance(scene) == (False, None)


def test_a_queue_at_its_limit_is_waited_for_until_a_lease_ends(scene):
    scene.ask(SetQueue(name="q", concurrency=1))
    scene.submit("a", "b", ttl_ms=TTL_MS)
    assert glance(scene) == (True, None)
    (grant,) = scene.claim()
    ready, next_ms = glance(scene)
    assert not ready
    assert next_ms == TTL_MS, "when the lease that is in the way expires"
    scene.complete(grant)
    assert glance(scene)[0]


def test_ready_tasks_whose_shares_are_all_at_their_limit_are_waited_for_until_a_lease_ends(scene):
    scene.ask(SetQueue(name="q", share_concurrency=1))
    scene.submit("a", "b", share="one", kind="k", ttl_ms=TTL_MS)
    assert glance(scene) == (True, None)
    (grant,) = scene.claim()
    ready, next_ms = glance(scene)
    assert not ready
    assert next_ms == TTL_MS, "when the lease that is in the way expires"
    scene.submit("c", share="two", kind="other")
    assert glance(scene)[0]
    assert not glance(scene, kinds=["k"])[0], "of this kind there is none but of the full share"
    scene.complete(grant)
    assert glance(scene, kinds=["k"])[0]


def test_tasks_without_a_share_are_held_by_no_shares_limit(scene):
    scene.submit("before")
    scene.ask(SetQueue(name="q", share_concurrency=1))
    scene.submit("a", "b", share="one", ttl_ms=TTL_MS)
    scene.claim(n=2)
    assert not glance(scene)[0]
    scene.submit("c")
    assert glance(scene)[0]


def test_a_share_whose_only_lease_has_lapsed_is_asked_for(scene):
    scene.ask(SetQueue(name="q", share_concurrency=1))
    scene.submit("a", "b", share="one", ttl_ms=TTL_MS)
    scene.claim()
    scene.pass_ms(TTL_MS)
    assert glance(scene)[0]


def test_a_rate_tells_when_it_lets_the_next_one_through(scene):
    scene.ask(SetQueue(name="q", rate=1, rate_ms=1_000))
    scene.submit("a", "b", ttl_ms=TTL_MS)
    scene.claim()
    ready, next_ms = glance(scene)
    assert not ready
    assert 0 < next_ms <= 1_000
    scene.pass_ms(next_ms)
    assert glance(scene)[0]


def test_a_rate_that_was_raised_is_asked_for_at_once_and_then_waited_for(scene):
    scene.ask(SetQueue(name="q", rate=1, rate_ms=3_600_000))
    scene.submit("a", "b", ttl_ms=TTL_MS)
    scene.claim()
    scene.ask(SetQueue(name="q", rate=10, rate_ms=1_000))
    assert glance(scene)[0], "who only looks would wait for ever: a claim writes down when it ends"
    assert scene.claim() == []
    ready, next_ms = glance(scene)
    assert not ready
    assert 0 < next_ms <= 200
    scene.pass_ms(next_ms)
    assert glance(scene)[0]
