"""decide and signal: answers that come in time, early, twice, late, or for another question."""

import pytest

from relet.core import limits
from relet.core.errors import Conflict, Forbidden, NotFound
from relet.core.model import Cause, State
from relet.core.rules.requeue import Requeue
from relet.core.rules.sweep import Sweep
from relet.core.work import DecisionKind, WaitKind
from tests.core.durable import claimed, decide, decisions, park, parked, signal, waits

HOUR_MS = limits.HOUR_MS


@pytest.mark.parametrize(
    ("kind", "value", "accepted"),
    [
        (DecisionKind.ACCEPT, None, True),
        (DecisionKind.EDIT, {"draft": "rye"}, True),
        (DecisionKind.RESPOND, "why?", False),
        (DecisionKind.IGNORE, None, False),
        (DecisionKind.DENY, None, False),
    ],
)
def test_a_decision_says_what_by_whom_when_and_on_exactly_what(scene, kind, value, accepted):
    parked(scene)
    asked = waits(scene)[0]
    scene.pass_ms(500)
    told = decide(scene, kind, value)
    assert (told.name, told.n, told.kind, told.value, told.by) == ("go", 1, kind, value, "ann")
    assert (told.digest, told.accepted) == (asked.digest, accepted)
    assert (told.at - asked.opened_at).total_seconds() == 0.5
    assert waits(scene)[0].decision == told
    assert scene.task().state is State.READY
    event = scene.events()[-1]
    assert (event.kind, event.detail["by"], event.detail["decision"]) == (Cause.ANSWERED, "ann", str(kind))


def test_a_decision_for_a_task_that_nobody_knows_is_not_found(scene):
    assert isinstance(decide(scene), NotFound)
    assert isinstance(signal(scene), NotFound)


@pytest.mark.parametrize("state", ["ready", "held", "done", "waits for another"])
def test_a_decision_that_nobody_asked_for_is_refused_and_not_kept(scene, state):
    match state:
        case "ready":
            scene.submit("t")
        case "held":
            scene.held()
        case "done":
            scene.complete(scene.held())
        case _:
            parked(scene, name="other")
    before = scene.state()
    refused = decide(scene)
    assert (type(refused), refused.code, refused.detail["field"]) == (Conflict, "RELET-NOT-ASKED", "name")
    assert ("but for 'other'" in str(refused)) is (state == "waits for another")
    assert scene.state() == before


def test_an_early_decision_does_not_answer_the_question_when_it_is_asked(scene):
    grant = scene.held()
    decide(scene)
    assert park(scene, grant).state is State.WAITING


def test_the_same_decision_said_twice_is_said_once(scene):
    parked(scene)
    told = decide(scene, DecisionKind.EDIT, {"draft": "rye"})
    before, events = scene.state(), scene.events()
    scene.pass_ms(5)
    assert decide(scene, DecisionKind.EDIT, {"draft": "rye"}) == told
    assert decide(scene, DecisionKind.EDIT, {"draft": "rye"}, digest=told.digest) == told
    assert (scene.state(), scene.events()) == (before, events)


@pytest.mark.parametrize(
    "other",
    [{"kind": DecisionKind.DENY}, {"value": 7}, {"by": "bob"}, {"digest": "0" * 32}],
    ids=str,
)
def test_ap_09_everyone_after_the_first_is_told_what_was_decided_and_by_whom(scene, other):
    parked(scene)
    decide(scene)
    before = scene.state()
    refused = decide(scene, **other)
    assert (type(refused), refused.code) == (Conflict, "RELET-ALREADY-DECIDED")
    assert (refused.detail["decision"], refused.detail["by"], refused.detail["n"]) == ("accept", "ann", 1)
    claimed(scene)
    assert isinstance(decide(scene, **other), Conflict), "nor once the grant is used"
    before = scene.state()
    assert decide(scene).kind is DecisionKind.ACCEPT
    assert scene.state() == before


def test_a_decision_made_on_another_question_than_the_open_one_is_refused(scene):
    parked(scene, n=1, ask={"delete": 5})
    old = waits(scene)[0].digest
    decide(scene, digest=old)
    park(scene, claimed(scene), n=1, ask={"delete": 9})
    before = scene.state()
    refused = decide(scene, digest=old)
    assert (type(refused), refused.code) == (Conflict, "RELET-OTHER-QUESTION")
    assert refused.detail["digest"] == waits(scene)[1].digest != old
    assert scene.state() == before
    assert decide(scene, DecisionKind.DENY, digest=refused.detail["digest"]).kind is DecisionKind.DENY


def test_ap_05_one_grant_allows_one_question_of_one_task(scene):
    parked(scene, id="t", ask={"delete": 5})
    parked(scene, id="u", ask={"delete": 5})
    decide(scene)
    assert scene.task("u").state is State.WAITING, "not the same action on another task"
    grant = claimed(scene, task_id="t")
    assert park(scene, grant, ask={"delete": 9}).state is State.WAITING, "not another action"
    decide(scene)
    grant = claimed(scene, task_id="t")
    assert park(scene, grant, ask={"delete": 5}).state is State.WAITING, "not the same action once more"


def test_ap_01_looking_at_an_open_question_changes_nothing_and_an_answer_is_taken_after_it(scene):
    parked(scene, timeout_ms=300_000)
    before = scene.state()
    for _ in range(4):
        scene.pass_ms(1_000)
        assert (waits(scene)[0].decision, scene.task().state) == (None, State.WAITING)
    assert scene.state() == before
    assert decide(scene).accepted
    assert [wait.decision.kind for wait in waits(scene)] == [DecisionKind.ACCEPT]


def test_ap_02_after_the_time_an_answer_is_refused_and_the_task_was_resumed_once(scene):
    parked(scene, timeout_ms=HOUR_MS)
    scene.pass_ms(HOUR_MS + 1)
    assert scene.ask(Sweep()).unanswered == 1
    before, events = scene.state(), scene.events()
    refused = decide(scene)
    assert (type(refused), refused.detail["decision"]) == (Conflict, "timeout")
    assert (scene.state(), scene.events()) == (before, events)
    assert scene.causes().count(Cause.ANSWERED) == 1


def test_an_answer_that_sees_the_end_of_the_time_writes_it_down_and_is_refused(scene):
    parked(scene, timeout_ms=HOUR_MS, default=(DecisionKind.ACCEPT, None))
    scene.pass_ms(HOUR_MS)
    refused = decide(scene, DecisionKind.DENY)
    assert (refused.code, refused.detail["decision"]) == ("RELET-WAIT-OVER", "accept")
    assert decisions(scene, claimed(scene)) == [("go", 1, "accept", None, "timeout")]
    assert decide(scene, DecisionKind.DENY).code == "RELET-ALREADY-DECIDED"


def test_a_last_moment_answer_is_taken(scene):
    parked(scene, timeout_ms=HOUR_MS, default=(DecisionKind.DENY, None))
    scene.pass_ms(HOUR_MS - 1)
    assert decide(scene).accepted
    scene.pass_ms(1)
    assert scene.ask(Sweep()).unanswered == 0
    assert decisions(scene, claimed(scene)) == [("go", 1, "accept", None, "ann")]


def test_who_waits_for_a_signal_cannot_be_decided_about(scene):
    parked(scene, kind=WaitKind.SIGNAL)
    before = scene.state()
    refused = decide(scene)
    assert (refused.code, refused.detail["wait"]) == ("RELET-NOT-ASKED", "signal")
    assert "relet signal t go" in str(refused)
    assert scene.state() == before


# -- signals -------------------------------------------------------------------------------------------------------


def test_a_signal_ends_the_wait_for_it(scene):
    grant = parked(scene, kind=WaitKind.SIGNAL)
    said = signal(scene, {"x": 1})
    assert (said.taken, said.kept) == (True, 0)
    assert scene.task().state is State.READY
    assert decisions(scene, grant) == [("go", 1, "signal", {"x": 1}, "signal")]


def test_an_early_signal_is_kept_and_taken_at_once_by_who_waits_for_it(scene):
    grant = scene.held()
    said = signal(scene, {"x": 1})
    assert (said.taken, said.kept) == (False, 1)
    assert park(scene, grant, kind=WaitKind.SIGNAL, timeout_ms=HOUR_MS).state is State.READY
    task = scene.task()
    assert (task.state, task.waiting_for, task.due_at) == (State.READY, None, None)
    assert scene.causes()[-2:] == [Cause.PARKED, Cause.ANSWERED]
    again = claimed(scene)
    assert decisions(scene, again) == [("go", 1, "signal", {"x": 1}, "signal")]
    assert park(scene, again, kind=WaitKind.SIGNAL).state is State.WAITING, "each answers one wait"


def test_signals_are_taken_in_the_order_in_which_they_came(scene):
    grant = scene.held()
    for n in range(3):
        signal(scene, n)
    signal(scene, "other", name="stop")
    for n in range(3):
        park(scene, grant, kind=WaitKind.SIGNAL)
        grant = claimed(scene)
        assert decisions(scene, grant)[-1][3] == n
    assert park(scene, grant, kind=WaitKind.SIGNAL).state is State.WAITING
    assert signal(scene, 3).kept == 1, "the other name's is kept still"


def test_an_approval_takes_no_signal_of_its_name(scene):
    parked(scene)
    assert not signal(scene).taken
    assert scene.task().state is State.WAITING


def test_64_signals_are_kept_and_the_next_is_refused_until_some_are_taken(scene):
    grant = scene.held()
    for n in range(limits.SIGNALS_KEPT):
        assert signal(scene, n, name=f"s{n % 2}").kept == n + 1
    before = scene.state()
    refused = signal(scene, "more")
    assert (type(refused), refused.code, refused.detail["kept"]) == (Conflict, "RELET-SIGNALS-FULL", 64)
    assert scene.state() == before
    park(scene, grant, "go", WaitKind.SIGNAL)
    assert signal(scene, "waited for").taken, "who waits for it takes it, however many are kept"
    park(scene, claimed(scene), "s0", WaitKind.SIGNAL)
    assert signal(scene, "more").kept == limits.SIGNALS_KEPT


def test_a_signal_repeated_by_its_call_is_delivered_once(scene):
    grant = scene.held()
    first = signal(scene, 1, call_id="c")
    before = scene.state()
    assert signal(scene, 1, call_id="c") == first
    assert scene.state() == before
    park(scene, grant, kind=WaitKind.SIGNAL)
    again = signal(scene, 1, call_id="c")
    assert (again.taken, again.kept) == (True, 0)
    scene.complete(claimed(scene))
    assert signal(scene, 1, call_id="c").taken, "asked again after the end, it is answered as it was"


@pytest.mark.parametrize("state", ["done", "failed"])
def test_a_finished_task_takes_no_more_signals(scene, state):
    if state == "done":
        scene.complete(scene.held())
    else:
        scene.submit("t", deadline_wall_ms=scene.clock.wall_ms() + 1)
        scene.pass_ms(1)
        scene.ask(Sweep())
    before = scene.state()
    refused = signal(scene)
    assert (type(refused), refused.detail["state"]) == (Conflict, state)
    assert scene.state() == before


def test_a_kept_signal_outlives_a_dead_letter(scene):
    scene.submit("t", deadline_wall_ms=scene.clock.wall_ms() + 1)
    signal(scene, "kept")
    scene.pass_ms(1)
    scene.ask(Sweep())
    scene.ask(Requeue(task_id="t"))
    assert park(scene, claimed(scene), kind=WaitKind.SIGNAL).state is State.READY


def test_a_signal_after_the_time_is_kept_for_the_next_wait(scene):
    parked(scene, kind=WaitKind.SIGNAL, timeout_ms=HOUR_MS, default=(DecisionKind.SIGNAL, "nothing came"))
    scene.pass_ms(HOUR_MS)
    said = signal(scene, "late")
    assert (said.taken, said.kept) == (False, 1)
    grant = claimed(scene)
    assert decisions(scene, grant) == [("go", 1, "signal", "nothing came", "timeout")]
    park(scene, grant, kind=WaitKind.SIGNAL)
    assert decisions(scene, claimed(scene))[-1][3] == "late"


def test_a_signal_for_another_name_leaves_the_wait_alone(scene):
    parked(scene, kind=WaitKind.SIGNAL)
    assert not signal(scene, name="stop").taken
    assert scene.task().state is State.WAITING


def test_nobody_answers_the_question_of_their_own_key(scene):
    parked(scene, key_id="k1")
    before = scene.state()
    refused = decide(scene, key_id="k1")
    assert (type(refused), refused.code) == (Forbidden, "RELET-OWN-QUESTION")
    assert scene.state() == before
    assert decide(scene, key_id="k2").accepted


def test_whose_question_it_is_is_that_of_who_asked_last(scene):
    grant = parked(scene, key_id="k1")
    decide(scene, DecisionKind.DENY, key_id="k2")
    (grant,) = scene.claim(task_id="t")
    park(scene, grant, ask={"draft": "rye"}, key_id="k3")
    assert decide(scene, key_id="k3").code == "RELET-OWN-QUESTION"
    assert decide(scene, key_id="k1").accepted


def test_a_question_asked_without_a_key_is_anybodys_to_answer(scene):
    parked(scene)
    assert decide(scene, key_id="k1").accepted
