"""park: a task that waits without a lease, and what ends its wait: an answer, a signal, or time."""

import msgspec
import pytest

from relet.core import limits
from relet.core.errors import Conflict, LeaseLost, NotFound
from relet.core.model import Cause, End, State
from relet.core.rules.cancel import Cancel
from relet.core.rules.claim import Claim
from relet.core.rules.finish import Ended
from relet.core.rules.inspect_work import Waits
from relet.core.rules.release import Release
from relet.core.rules.requeue import Requeue
from relet.core.rules.sweep import Sweep, Swept
from relet.core.work import DecisionKind, WaitKind
from tests.core.durable import ASK, claimed, decide, decisions, park, parked, signal, waits
from tests.core.scene import TTL_MS

HOUR_MS = limits.HOUR_MS
DENIED = (DecisionKind.DENY, "nobody looked")


def test_a_parked_task_waits_without_a_lease_and_at_no_attempts_cost(scene):
    grant = scene.held()
    assert park(scene, grant) == Ended(state=State.WAITING)
    task = scene.task()
    assert (task.state, task.live, task.waiting_for, task.due_at) == (State.WAITING, False, "go", None)
    assert (task.attempt, task.failures, task.losses) == (1, 0, 0)
    assert scene.rows("SELECT ended FROM leases") == [(End.PARKED,)]
    assert scene.claim() == []
    scene.pass_ms(10 * TTL_MS)
    assert scene.ask(Sweep()) == Swept(lapsed=0, overdue=0, unanswered=0, more=False)
    assert scene.task().losses == 0


def test_everybody_sees_what_is_asked_by_which_token_and_since_when(scene):
    grant = parked(scene, timeout_ms=HOUR_MS)
    (wait,) = waits(scene)
    assert (wait.task_id, wait.queue, wait.name, wait.n, wait.kind) == ("t", "q", "go", 1, WaitKind.APPROVAL)
    assert (wait.ask, wait.token, wait.open, wait.decision) == (ASK, grant.handle.token, True, None)
    assert (wait.due_at - wait.opened_at).total_seconds() == 3_600
    assert [event.detail["digest"] for event in scene.events() if event.kind is Cause.PARKED] == [wait.digest]


def test_the_open_questions_of_a_queue_are_listed_in_pages(scene):
    for name in ("a", "b", "c"):
        parked(scene, id=name)
    decide(scene, id="b")
    first = scene.ask(Waits(queue="q", limit=1))
    assert [wait.task_id for wait in first.waits] == ["a"]
    rest = scene.ask(Waits(queue="q", after=first.cursor))
    assert ([wait.task_id for wait in rest.waits], rest.cursor) == (["c"], None)
    assert scene.ask(Waits(queue="other")).waits == []


def test_the_questions_of_a_task_that_nobody_knows_are_not_found(scene):
    assert isinstance(scene.ask(Waits(task_id="x")), NotFound)


def test_the_same_park_said_twice_is_answered_as_the_first(scene):
    grant = parked(scene, timeout_ms=HOUR_MS)
    before, events = scene.state(), scene.events()
    scene.pass_ms(5)
    assert park(scene, grant, timeout_ms=HOUR_MS) == Ended(state=State.WAITING, delay_ms=HOUR_MS)
    assert (scene.state(), scene.events()) == (before, events)


@pytest.mark.parametrize(
    "other",
    [{"name": "stop"}, {"kind": WaitKind.SIGNAL}, {"ask": 7}, {"timeout_ms": 1}, {"n": 1},
     {"timeout_ms": HOUR_MS, "default": DENIED}],
    ids=str,
)  # fmt: skip
def test_a_second_park_with_other_content_is_a_conflict_and_the_first_stands(scene, other):
    grant = parked(scene)
    before = scene.state()
    assert isinstance(park(scene, grant, **other), Conflict)
    assert scene.state() == before


def test_another_verb_under_a_parked_lease_is_refused_as_closed(scene):
    grant = parked(scene)
    before = scene.state()
    assert scene.ask(Release(handle=grant.handle)).reason == "closed"
    assert scene.complete(grant).outcomes[0].reason == "closed"
    assert scene.state() == before


def test_a_park_after_a_cancel_is_refused_and_nothing_waits(scene):
    grant = scene.held()
    scene.ask(Cancel(task_id="t", reason="enough"))
    before = scene.state()
    refused = park(scene, grant)
    assert isinstance(refused, LeaseLost)
    assert refused.reason == "cancelled"
    assert scene.state() == before


def test_a_park_from_the_very_instant_of_expiry_is_refused(scene):
    grant = scene.held()
    scene.pass_ms(TTL_MS)
    assert park(scene, grant).reason == "expired"
    assert waits(scene) == []


def test_a_cancelled_task_asks_nothing_any_more_and_an_answer_after_it_is_refused(scene):
    parked(scene, timeout_ms=HOUR_MS)
    scene.ask(Cancel(task_id="t", reason="enough"))
    task = scene.task()
    assert (task.state, task.waiting_for, task.due_at) == (State.CANCELLED, None, None)
    before = scene.state()
    refused = decide(scene)
    assert (type(refused), refused.code) == (Conflict, "RELET-NOT-ASKED")
    assert isinstance(signal(scene), Conflict)
    scene.pass_ms(HOUR_MS)
    assert scene.ask(Sweep()).unanswered == 0
    assert scene.state() == before
    assert not waits(scene)[0].open


def test_the_next_holder_has_a_new_token_and_the_answer(scene):
    first = parked(scene)
    decide(scene, DecisionKind.EDIT, {"draft": "rye"})
    second = claimed(scene, holder="B")
    assert second.handle.token > first.handle.token
    assert (second.attempt, second.took_over) == (1, None), "a wait is no loss"
    assert decisions(scene, second) == [("go", 1, "edit", {"draft": "rye"}, "ann")]
    assert scene.causes() == [Cause.SUBMITTED, Cause.CLAIMED, Cause.PARKED, Cause.ANSWERED, Cause.CLAIMED]


def test_a_wait_starts_the_count_of_losses_in_a_row_anew(scene):
    scene.submit("t", ttl_ms=1_000, max_losses=2, max_attempts=9)
    scene.claim()
    scene.pass_ms(1_000)
    park(scene, claimed(scene))
    decide(scene)
    claimed(scene)
    scene.pass_ms(1_000)
    scene.ask(Sweep())
    assert (scene.task().state, scene.task().losses) == (State.READY, 2)


def test_a_wait_clears_what_an_earlier_attempt_had_to_say(scene):
    scene.held(ttl_ms=1_000)
    scene.pass_ms(1_000)
    grant = claimed(scene)
    assert scene.task().code == "RELET-LAPSED"
    park(scene, grant)
    assert (scene.task().error, scene.task().code) == (None, None)


def test_without_a_number_each_question_is_the_next_of_its_name(scene):
    parked(scene)
    decide(scene)
    park(scene, claimed(scene))
    decide(scene, DecisionKind.DENY)
    park(scene, claimed(scene), name="other")
    assert [(wait.name, wait.n, wait.open) for wait in waits(scene)] == [
        ("go", 1, False), ("go", 2, False), ("other", 1, True),
    ]  # fmt: skip


def test_a_question_that_has_its_answer_makes_the_task_ready_at_once(scene):
    parked(scene, n=1, timeout_ms=HOUR_MS)
    decide(scene)
    again = claimed(scene)
    assert park(scene, again, n=1, timeout_ms=HOUR_MS) == Ended(state=State.READY)
    assert (scene.task().state, scene.task().waiting_for) == (State.READY, None)
    third = claimed(scene)
    assert third.handle.token > again.handle.token
    assert decisions(scene, third) == [("go", 1, "accept", None, "ann")]
    assert scene.events()[-2].detail["answered"] is True


def test_a_question_asked_anew_with_another_digest_does_not_take_the_old_decision(scene):
    parked(scene, n=1, ask={"delete": 5})
    decide(scene)
    assert park(scene, claimed(scene), n=1, ask={"delete": 9}) == Ended(state=State.WAITING)
    old, new = waits(scene)
    assert (old.n, new.n, old.digest != new.digest) == (1, 1, True)
    assert (old.open, new.open, new.decision) == (False, True, None)
    decide(scene, DecisionKind.DENY)
    found = decisions(scene, claimed(scene))
    assert found == [("go", 1, "accept", None, "ann"), ("go", 1, "deny", None, "ann")]


def test_the_same_words_for_a_signal_are_another_question_than_for_an_approval(scene):
    parked(scene, n=1)
    decide(scene)
    assert park(scene, claimed(scene), kind=WaitKind.SIGNAL, n=1).state is State.WAITING


def test_a_question_that_was_withdrawn_is_asked_anew_and_counts_from_now(scene):
    parked(scene, n=1, timeout_ms=HOUR_MS)
    scene.pass_ms(HOUR_MS - 1)
    scene.ask(Cancel(task_id="t", reason="enough"))
    scene.ask(Requeue(task_id="t"))
    grant = claimed(scene)
    assert park(scene, grant, n=1, timeout_ms=HOUR_MS) == Ended(state=State.WAITING, delay_ms=HOUR_MS)
    (wait,) = waits(scene)
    assert (wait.token, wait.open, (wait.due_at - wait.opened_at).seconds) == (grant.handle.token, True, 3_600)
    scene.pass_ms(HOUR_MS - 1)
    assert decide(scene).kind is DecisionKind.ACCEPT


def test_of_a_timer_that_was_withdrawn_the_first_time_stands(scene):
    parked(scene, kind=WaitKind.TIMER, n=1, timeout_ms=HOUR_MS)
    scene.pass_ms(HOUR_MS - 1_000)
    scene.ask(Cancel(task_id="t", reason="enough"))
    scene.ask(Requeue(task_id="t"))
    again = park(scene, claimed(scene), kind=WaitKind.TIMER, n=1, timeout_ms=2 * HOUR_MS)
    assert again == Ended(state=State.WAITING, delay_ms=1_000)


def test_a_decision_is_readable_by_every_later_holder_and_never_changes(scene):
    parked(scene, n=1)
    told = decide(scene, DecisionKind.RESPOND, "later")
    known = [("go", 1, "respond", "later", "ann")]
    for _ in range(3):
        grant = claimed(scene)
        assert decisions(scene, grant) == known
        scene.pass_ms(TTL_MS)
        scene.ask(Sweep())
        scene.pass_ms(HOUR_MS)
    assert scene.task().state is State.FAILED
    scene.ask(Requeue(task_id="t"))
    grant = claimed(scene)
    assert decisions(scene, grant) == known
    assert waits(scene)[0].decision == told
    scene.complete(grant)
    assert decisions(scene, grant) == known, "and by whoever had it, ever after"


# -- time ----------------------------------------------------------------------------------------------------------


def by_a_sweep(scene):
    assert scene.ask(Sweep()).unanswered == 1


def by_a_claim(scene):
    (grant,) = scene.claim()
    scene.ask(Release(handle=grant.handle))


def by_a_claim_of_this_task(scene):
    (grant,) = scene.claim(task_id="t")
    scene.ask(Release(handle=grant.handle))


def by_a_late_answer(scene):
    assert decide(scene).code == "RELET-WAIT-OVER"


def by_a_late_signal(scene):
    assert not signal(scene).taken


@pytest.mark.parametrize(
    "seen", [by_a_sweep, by_a_claim, by_a_claim_of_this_task, by_a_late_answer, by_a_late_signal]
)
@pytest.mark.parametrize(
    ("default", "known"),
    [(None, ("go", 1, "timeout", None, "timeout")), (DENIED, ("go", 1, "deny", "nobody looked", "timeout"))],
    ids=["no default", "default"],
)
def test_at_the_very_instant_the_time_is_over_whoever_sees_it(scene, seen, default, known):
    kind = WaitKind.SIGNAL if seen is by_a_late_signal else WaitKind.APPROVAL
    grant = parked(scene, kind=kind, timeout_ms=HOUR_MS, default=default)
    scene.pass_ms(HOUR_MS - 1)
    assert scene.ask(Sweep()).unanswered == 0
    assert scene.claim() == []
    scene.pass_ms(1)
    seen(scene)
    assert (scene.task().state, scene.task().waiting_for, scene.task().due_at) == (State.READY, None, None)
    assert decisions(scene, grant) == [known]
    assert scene.ask(Sweep()).unanswered == 0, "once"
    assert [event.kind for event in scene.events()].count(Cause.ANSWERED) == 1


def test_a_claim_of_a_task_that_still_waits_is_refused_and_names_the_state(scene):
    parked(scene, timeout_ms=HOUR_MS)
    before = scene.state()
    refused = scene.claim(task_id="t")
    assert (type(refused), refused.detail["state"]) == (Conflict, "waiting")
    scene.pass_ms(HOUR_MS - 1)
    assert isinstance(scene.claim(task_id="t"), Conflict)
    assert scene.state() == before


def test_waits_that_run_out_are_ended_in_bounded_batches(scene):
    most = limits.LAPSES_PER_BATCH + 1
    for n in range(most):
        parked(scene, id=f"t{n}", timeout_ms=1_000)
    scene.pass_ms(1_000)
    assert scene.ask(Sweep()) == Swept(lapsed=0, overdue=0, unanswered=most - 1, more=True)
    assert scene.ask(Sweep()) == Swept(lapsed=0, overdue=0, unanswered=1, more=False)


def test_time_is_measured_on_the_wall_and_a_step_of_it_ends_the_wait(scene):
    parked(scene, timeout_ms=HOUR_MS)
    scene.clock.step(-60)
    scene.pass_ms(HOUR_MS)
    assert scene.ask(Sweep()).unanswered == 0
    scene.clock.step(60)
    assert scene.ask(Sweep()).unanswered == 1


def test_a_timer_ends_by_time_alone(scene):
    parked(scene, kind=WaitKind.TIMER, timeout_ms=HOUR_MS)
    before = scene.state()
    refused = decide(scene)
    assert (type(refused), refused.code) == (Conflict, "RELET-NOT-ASKED")
    assert "it goes on by itself" in str(refused)
    assert scene.state() == before
    assert not signal(scene).taken
    scene.pass_ms(HOUR_MS)
    assert claimed(scene)


def test_a_task_that_runs_out_of_time_is_taken_in_its_order_among_the_ready(scene):
    parked(scene, id="late", timeout_ms=1_000)
    scene.submit("urgent", priority=5)
    scene.pass_ms(1_000)
    assert [grant.handle.task_id for grant in scene.claim(n=3)] == ["urgent", "late"]


def test_an_answered_task_is_ready_at_once_and_another_claims_it_in_the_same_request_as_its_own_end(scene):
    parked(scene)
    decide(scene)
    other = scene.held("other")
    answer = scene.complete(other, following=Claim(holder="A", queues=["q"]))
    assert [grant.handle.task_id for grant in answer.grants] == ["t"]


def test_a_parked_lease_is_known_to_whoever_looks_by_its_handle(scene):
    grant = parked(scene)
    stale = msgspec.structs.replace(grant.handle, secret="0" * 32)
    assert isinstance(park(scene, msgspec.structs.replace(grant, handle=stale)), NotFound)
