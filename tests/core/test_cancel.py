"""cancel and requeue: one task and many; commit order decides against completion."""

import pytest

from relet.core.errors import Conflict, LeaseLost, NotFound
from relet.core.model import Cause, State
from relet.core.rules.cancel import Batch, Cancel, CancelMany
from relet.core.rules.fail import Fail
from relet.core.rules.release import Release
from relet.core.rules.requeue import Requeue, RequeueMany
from relet.core.tx import TaskFilter
from tests.core.scene import TTL_MS


def cancel(scene, id="t", reason="why not"):
    return scene.ask(Cancel(task_id=id, reason=reason))


def fail(scene, grant):
    return scene.ask(Fail(handle=grant.handle, error="no", retry=False))


def test_a_task_that_nobody_holds_is_cancelled_at_once(scene):
    scene.submit("t", delay_ms=5_000)
    task = cancel(scene)
    assert (task.state, task.reason, task.cancel_requested, task.due_at) == (State.CANCELLED, "why not", False, None)
    assert scene.causes() == [Cause.SUBMITTED, Cause.CANCELLED]
    scene.pass_ms(5_000)
    assert scene.claim() == []


def test_a_held_task_is_asked_to_give_way(scene):
    grant = scene.held()
    task = cancel(scene)
    assert (task.state, task.cancel_requested, task.live) == (State.LEASED, True, True)
    assert isinstance(scene.complete(grant).outcomes[0], LeaseLost)
    scene.ask(Release(handle=grant.handle))
    assert scene.task().state is State.CANCELLED
    assert scene.causes()[-2:] == [Cause.CANCEL_REQUESTED, Cause.CANCELLED]


def test_a_holder_that_never_gives_way_lapses_into_cancelled_and_that_is_no_loss(scene):
    scene.held()
    cancel(scene)
    scene.pass_ms(TTL_MS)
    assert scene.claim() == []
    task = scene.task()
    assert (task.state, task.losses, task.attempt, task.reason) == (State.CANCELLED, 0, 1, "why not")


def test_an_expired_lease_does_not_hold_up_a_cancel(scene):
    scene.held()
    scene.pass_ms(TTL_MS)
    assert cancel(scene).state is State.CANCELLED


@pytest.mark.parametrize("twice", [False, True], ids=["once-cancelled", "asked-for"])
def test_a_second_cancel_changes_nothing(scene, twice):
    if twice:
        scene.held()
    else:
        scene.submit("t")
    cancel(scene)
    before, events = scene.state(), scene.events()
    again = cancel(scene, reason="other words")
    assert again.state is (State.LEASED if twice else State.CANCELLED)
    assert (scene.state(), scene.events()) == (before, events)


@pytest.mark.parametrize("how", ["done", "failed"])
def test_what_is_finished_cannot_be_cancelled(scene, how):
    grant = scene.held()
    if how == "done":
        scene.complete(grant)
    else:
        fail(scene, grant)
    before = scene.state()
    refused = cancel(scene)
    assert isinstance(refused, Conflict)
    assert refused.detail["state"] == how
    assert scene.state() == before


@pytest.mark.parametrize("ask", [Cancel(task_id="x", reason=""), Requeue(task_id="x")], ids=["cancel", "requeue"])
def test_a_task_that_nobody_knows_is_not_found(scene, ask):
    assert isinstance(scene.ask(ask), NotFound)


def crowd(scene):
    """One task in each situation; ids say which."""
    scene.complete(scene.held("done"))
    fail(scene, scene.held("failed"))
    scene.submit("cancelled")
    cancel(scene, "cancelled")
    scene.held("asked")
    cancel(scene, "asked")
    scene.held("held")
    scene.held("expired", ttl_ms=1_000)
    scene.submit("ready")
    scene.pass_ms(1_000)


def test_many_are_cancelled_as_each_alone_would_be(scene):
    crowd(scene)
    batch = scene.ask(CancelMany(which=TaskFilter(queue="q"), reason="all"))
    assert batch == Batch(ids=["held", "expired", "ready"], cursor=None)
    assert scene.task("held").cancel_requested
    assert scene.task("expired").state is scene.task("ready").state is State.CANCELLED
    assert scene.ask(CancelMany(which=TaskFilter(queue="q"), reason="all")).ids == []


def test_a_dry_run_answers_the_same_and_changes_nothing(scene):
    crowd(scene)
    before = scene.state()
    assert scene.ask(CancelMany(which=TaskFilter(), reason="", dry_run=True)).ids == ["held", "expired", "ready"]
    assert scene.ask(RequeueMany(which=TaskFilter(), dry_run=True)).ids == ["failed"]
    assert scene.state() == before


def test_a_filter_picks_by_queue_kind_state_and_every_label(scene):
    scene.submit("a", labels={"x": "1", "y": "2"})
    scene.submit("b", labels={"x": "1"})
    scene.submit("c", queue="r")
    scene.submit("d", kind="l")
    scene.submit("e", labels={'quo"ted': "\\", "y": "2"})
    for which, ids in [
        (TaskFilter(queue="r"), ["c"]),
        (TaskFilter(kind="l"), ["d"]),
        (TaskFilter(labels={"x": "1"}), ["a", "b"]),
        (TaskFilter(labels={"y": "2", "x": "1"}), ["a"]),
        (TaskFilter(labels={'quo"ted': "\\"}), ["e"]),
        (TaskFilter(state=State.FAILED), []),
        (TaskFilter(state=State.READY, queue="q", kind="k"), ["a", "b", "e"]),
    ]:
        assert scene.ask(CancelMany(which=which, reason="", dry_run=True)).ids == ids


def test_bulk_verbs_go_on_batch_by_batch(scene):
    scene.submit(*[f"t{n}" for n in range(5)])
    first = scene.ask(CancelMany(which=TaskFilter(), reason="", most=3))
    assert first.ids == ["t0", "t1", "t2"]
    rest = scene.ask(CancelMany(which=TaskFilter(), reason="", most=3, after=first.cursor))
    assert rest == Batch(ids=["t3", "t4"], cursor=None)
    again = scene.ask(RequeueMany(which=TaskFilter(state=State.CANCELLED), most=2))
    assert (again.ids, again.cursor) == (["t0", "t1"], 2)


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_dead_letter_gets_another_life(scene, how):
    scene.submit("t", max_attempts=1)
    if how == "failed":
        fail(scene, scene.claim()[0])
    else:
        cancel(scene)
    task = scene.ask(Requeue(task_id="t"))
    assert (task.state, task.reason, task.failures, task.losses) == (State.READY, None, 0, 0)
    assert task.attempt == (2 if how == "failed" else 1), "attempt keeps growing"
    event = scene.events()[-1]
    assert (event.kind, event.detail["was"]) == (Cause.REQUEUED, how)
    (grant,) = scene.claim()
    assert scene.ask(Fail(handle=grant.handle, error="again", delay_ms=0)).reason == "attempts", "and counts anew"


@pytest.mark.parametrize("how", ["ready", "held", "done"])
def test_only_what_is_dead_can_be_requeued(scene, how):
    if how == "ready":
        scene.submit("t")
    else:
        grant = scene.held()
        if how == "done":
            scene.complete(grant)
    before = scene.state()
    refused = scene.ask(Requeue(task_id="t"))
    assert isinstance(refused, Conflict)
    assert refused.detail["state"] == {"held": "leased"}.get(how, how)
    assert scene.state() == before


@pytest.mark.parametrize(("left_ms", "kept"), [(5_000, True), (1_000, False)], ids=["ahead", "passed"])
def test_a_deadline_that_has_passed_does_not_kill_the_next_life(scene, left_ms, kept):
    scene.submit("t", deadline_wall_ms=scene.clock.wall_ms() + left_ms)
    cancel(scene)
    scene.pass_ms(1_000)
    assert (scene.ask(Requeue(task_id="t")).deadline is not None) is kept
    assert scene.claim()


def test_requeue_many_means_the_failed_ones_unless_a_state_is_given(scene):
    crowd(scene)
    assert scene.ask(RequeueMany(which=TaskFilter())).ids == ["failed"]
    assert scene.ask(RequeueMany(which=TaskFilter(state=State.CANCELLED))).ids == ["cancelled"]
    assert scene.ask(RequeueMany(which=TaskFilter(state=State.DONE))).ids == []
