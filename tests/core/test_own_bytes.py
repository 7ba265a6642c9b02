"""Which bytes a tenant, or a key of it, may read: those that a task of its names, and those that it has sent."""

from relet.core.rules.attach import Attach
from relet.core.rules.effect_queue import FindEffectQueue
from relet.core.rules.own_bytes import AskOwnBytes
from relet.core.rules.start_effect import StartEffect
from tests.core.durable import OPAQUE, raw

ONE, OTHER = "a" * 64, "b" * 64


def attached(scene, digest, id="t", queue="q"):
    grant = scene.held(id, queue=queue)
    scene.ask(Attach(handle=grant.handle, name="page", uri=f"artifact:{digest}", sha256=digest, size=1))
    return grant


def test_what_a_task_of_the_tenant_names_is_its_own(scene):
    attached(scene, ONE)
    assert scene.ask(AskOwnBytes(digests=[ONE, OTHER])).named == [ONE]


def test_a_key_that_is_bound_to_queues_has_what_their_tasks_name(scene):
    attached(scene, ONE)
    attached(scene, OTHER, "u", "other")
    assert scene.ask(AskOwnBytes(digests=[ONE, OTHER], queues=["other"])).named == [OTHER]


def test_marks_tell_bytes_and_keys_and_tenants_apart_and_are_the_same_each_time(scene):
    first = scene.ask(AskOwnBytes(digests=[ONE, OTHER])).marks
    assert scene.ask(AskOwnBytes(digests=[ONE, OTHER])).marks == first
    of_key = scene.ask(AskOwnBytes(digests=[ONE], key_id="k1")).marks
    of_other = scene.backend.call_of("elsewhere", AskOwnBytes(digests=[ONE])).marks
    assert len({*first, *of_key, *of_other}) == 4


def test_the_queue_of_an_effect_is_that_of_the_task_which_tries_it(scene):
    grant = scene.held("t", queue="shop")
    effect = scene.ask(StartEffect(
        handle=grant.handle, name="pay", payload=raw(1), contract=OPAQUE, timeout_ms=1_000, call_id="c", key="order"
    ))  # fmt: skip
    assert scene.ask(FindEffectQueue(effect_id=effect.id)) == "shop"
    assert scene.ask(FindEffectQueue(effect_id="none")) is None
