"""prune: finished tasks leave once they are old enough; figures and ids stay as they were."""

from __future__ import annotations

import pytest

from relet.client.durable.contracts import Keyed
from relet.core.errors import Conflict, LeaseLost, NotFound
from relet.core.model import State
from relet.core.work import EffectState
from relet.testing.conformance.evidence import refused
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, brought_to, causes, held, ready, taken, wear_out

FINISHED = [State.DONE, State.FAILED, State.CANCELLED]


def follow(route: Route) -> None:
    """Something that happens after all else, so that none of what is looked at is the newest."""
    ready(route, "newest", "elsewhere")


@pytest.mark.parametrize("state", FINISHED)
def test_a_finished_task_leaves_once_it_is_old_enough_and_not_before(route: Route, state: State) -> None:
    brought_to(route, state)
    follow(route)
    route.clock.advance("59s")
    assert route.db.prune("1m").ids == []
    route.clock.advance("1s")
    assert route.db.prune("1m", dry_run=True).ids == ["t"]
    assert route.db.task("t").state is state
    assert route.other.prune("1m").ids == ["t"]
    assert [task.id for task in route.db.tasks()] == ["newest"]
    with pytest.raises(NotFound) as gone:
        route.db.task("t")
    assert gone.value.code == "RELET-GONE"


@pytest.mark.parametrize("state", [State.READY, State.LEASED, State.WAITING])
def test_nothing_unfinished_ever_leaves(route: Route, state: State) -> None:
    brought_to(route, state)
    follow(route)
    route.clock.advance("3650d")
    assert route.db.prune("1m").ids == []


def test_an_id_that_has_left_gets_no_second_life(route: Route) -> None:
    held(route).complete("done")
    follow(route)
    route.clock.advance("1d")
    route.db.prune("1d")
    with refused(route, Conflict, field="id", task_id="t") as caught:
        route.db.submit(QUEUE, {"topic": "t"}, id="t")
    assert caught.value.code == "RELET-GONE"
    with refused(route, Conflict, task_id="t"):
        route.db.submit_many(QUEUE, [1, 2], ids=["other", "t"])
    assert [task.id for task in route.db.tasks()] == ["newest"], "all or nothing"


def test_whoever_asks_about_it_by_its_id_hears_that_it_is_gone(route: Route) -> None:
    held(route).complete("done")
    follow(route)
    route.clock.advance("1d")
    route.db.prune("1d")
    for verb in (
        lambda: route.db.history("t"),
        lambda: route.db.cancel("t"),
        lambda: route.db.requeue("t"),
        lambda: route.db.claim(task_id="t"),
        lambda: route.db.decide("t", "go", "accept"),
        lambda: route.db.signal("t", "go", 1),
        lambda: route.db.waits("t"),
    ):
        with pytest.raises(NotFound) as gone:
            verb()
        assert gone.value.code == "RELET-GONE"


def test_whoever_held_it_once_hears_that_it_is_gone(route: Route) -> None:
    lease = held(route)
    lease.fail("no", delay=0)
    taken(route).complete("done")
    follow(route)
    route.clock.advance("1d")
    route.db.prune("1d")
    for verb in (lambda: lease.save(1), lambda: lease.complete(1), lambda: route.db.lease(lease.handle)):
        with pytest.raises((Conflict, LeaseLost)) as gone:
            verb()
        assert gone.value.code == "RELET-GONE"
    with pytest.raises(NotFound) as never:
        route.stranger.lease(lease.handle)
    assert never.value.code == "RELET-HANDLE", "of another tenant it is nothing"


def test_figures_stay_as_they_were(route: Route) -> None:
    held(route, "a").complete("done")
    held(route, "b").complete("done")
    wear_out(route, "c")
    ready(route, "d")
    ready(route, "e")
    route.db.cancel("e")
    follow(route)
    (before,) = route.db.stats(QUEUE).queues
    route.clock.advance("1d")
    assert route.db.prune("1d").ids == ["a", "b", "c", "e"]
    (after,) = route.db.stats(QUEUE).queues
    assert (before.done, before.failed, before.cancelled, before.ready) == (2, 1, 1, 1)
    assert after == before
    taken(route).complete("done")
    wear_out(route, "f")
    (later,) = route.db.stats(QUEUE).queues
    assert (later.done, later.failed, later.cancelled, later.ready) == (3, 2, 1, 0)


def test_a_queue_keeps_its_tasks_as_long_as_it_is_told_and_any_other_for_ever(route: Route) -> None:
    assert route.db.queue(QUEUE, retention="2d").retention_ms == 2 * 86_400_000
    held(route).complete("done")
    ready(route, "u", "other")
    taken(route, "other").complete("done")
    follow(route)
    route.clock.advance("1d")
    assert route.db.prune().ids == []
    route.clock.advance("1d")
    assert route.db.prune().ids == ["t"]
    route.clock.advance("3650d")
    assert route.db.prune().ids == []
    assert route.db.prune("1d", queue="absent").ids == []
    assert route.db.prune("1d", queue="other").ids == ["u"]


def test_a_retention_that_is_lifted_keeps_tasks_for_ever_again(route: Route) -> None:
    route.db.queue(QUEUE, retention="2d", concurrency=3)
    held(route).complete("done")
    follow(route)
    row = route.other.queue(QUEUE, retention="none")
    assert (row.retention_ms, row.concurrency) == (None, 3), "and nothing else"
    route.clock.advance("3650d")
    assert route.db.prune().ids == []
    assert route.db.queue(QUEUE, retention="2d").retention_ms == 2 * 86_400_000
    assert route.db.prune().ids == ["t"]


def test_everything_of_it_leaves(route: Route) -> None:
    lease = held(route)
    for n in range(3):
        lease.save(n)
    artifact = lease.attach("page", b"bytes")
    lease.park("go", timeout="1h", default="accept")
    route.db.decide("t", "go", "accept")
    route.db.signal("t", "word", 1)
    taken(route).complete("done")
    follow(route)
    route.clock.advance("1d")
    assert route.db.prune("1d").ids == ["t"]
    for listed in (route.db.steps, route.db.checkpoints, route.db.artifacts, route.db.history):
        with pytest.raises(NotFound):
            listed("t")
    assert route.db.waits() == []
    route.clock.advance("2d")
    assert route.db.collect("1d").n == route.objects_per_upload
    with pytest.raises(NotFound):
        route.db.open(artifact.uri)


def test_a_receipt_is_kept_as_long_as_was_promised_and_for_thirty_days_at_least(route: Route) -> None:
    for name, days in (("short", 1), ("long", 60)):
        ready(route, name)
        with taken(route).run() as run:
            run.effect("send", {}, lambda *_: "sent", contract=Keyed(f"{days}d"))
            run.lease.complete("done")
    follow(route)
    route.clock.advance("29d")
    assert route.db.prune("1d").ids == []
    route.clock.advance("1d")
    assert route.db.prune("1d").ids == ["short"]
    route.clock.advance("29d")
    assert route.db.prune("1d").ids == []
    route.clock.advance("1d")
    assert route.db.prune("1d").ids == ["long"]
    assert route.db.effects() == []


def test_a_task_with_an_effect_that_nobody_knows_of_stays(route: Route) -> None:
    ready(route)
    with taken(route).run() as run:
        run.effect("charge", {}, lambda *_: 1 / 0)
    assert route.db.effects()[0].state is EffectState.UNKNOWN
    route.db.cancel("t", "given up")
    follow(route)
    route.clock.advance("3650d")
    assert route.db.prune("1d").ids == []
    route.db.reconcile(route.db.effects()[0].id, "not_applied")
    ready(route, "newer", "elsewhere")
    route.clock.advance("30d")
    assert route.db.prune("1d").ids == ["t"]


def test_the_newest_event_stays_for_whoever_watches(route: Route) -> None:
    held(route).complete("done")
    seen = route.db.history("t")[-1].seq
    route.clock.advance("1d")
    assert route.db.prune("1d").ids == []
    follow(route)
    assert route.db.prune("1d").ids == ["t"]
    assert next(iter(route.db.watch(after=seen))).seq == seen + 1
    assert causes(route, "newest") == ["submitted"]


def test_many_leave_in_small_batches(route: Route) -> None:
    route.db.submit_many(QUEUE, list(range(250)))
    for lease in route.db.claim_many(QUEUE, 250):
        lease.complete()
    follow(route)
    route.clock.advance("1d")
    assert route.db.prune("1d", dry_run=True).count == 250
    assert route.db.prune("1d").count == 250
    assert [task.id for task in route.db.tasks()] == ["newest"]


def test_tokens_go_on_above_those_that_have_left(route: Route) -> None:
    lease = held(route)
    lease.complete("done")
    follow(route)
    route.clock.advance("1d")
    route.db.prune("1d")
    assert held(route, "next").token > lease.token
