"""outlook: which queues are worth a claim, and when the first lease lapses; it changes nothing."""

from relet.core.rules.outlook import Outlook
from tests.core.scene import TTL_MS


def outlook(scene, *queues, tenant=None):
    before = scene.state()
    ask = Outlook(queues=list(queues))
    seen = scene.ask(ask) if tenant is None else scene.backend.call_of(tenant, ask)
    assert scene.state() == before
    return sorted(seen.queues), seen.lapse_ms


def test_a_queue_is_worth_a_claim_where_a_task_is_ready_or_will_be_by_time(scene):
    assert outlook(scene, "q", "p", "later") == ([], None)
    scene.submit("t")
    scene.submit("u", queue="p", kind="k")
    scene.submit("w", queue="later", delay_ms=500)
    scene.submit("v", queue="date", at_wall_ms=scene.clock.wall_ms() + 500)
    assert outlook(scene, "later", "q", "none", "p", "date") == (["date", "later", "p", "q"], None)
    assert outlook(scene, "none", "p") == (["p"], None)
    assert outlook(scene) == ([], None)


def test_one_whose_tasks_are_all_held_or_over_is_not(scene):
    scene.held("t", ttl_ms=TTL_MS)
    assert outlook(scene, "q") == ([], TTL_MS)
    scene.pass_ms(TTL_MS)
    assert outlook(scene, "q") == ([], 0)
    (grant,) = scene.claim()
    scene.complete(grant)
    assert outlook(scene, "q") == ([], None)


def test_tasks_of_another_tenant_are_not_seen(scene):
    scene.submit("t")
    assert outlook(scene, "q", tenant="elsewhere") == ([], None)
