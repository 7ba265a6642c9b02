"""claim by id: this very task, and the claim that is repeated by its request id."""

from itertools import count

import pytest

from relet.core.errors import Conflict, LeaseLost, NotFound
from relet.core.model import Cause, Handle, State
from relet.core.rules.cancel import Cancel
from relet.core.rules.fail import Fail
from relet.core.rules.release import Release
from tests.core.scene import TTL_MS


def test_a_task_is_taken_by_id_whatever_its_place_in_the_queue(scene):
    scene.submit("a", "b")
    (grant,) = scene.claim(task_id="b")
    assert grant.handle.task_id == "b"


def test_a_task_that_nobody_knows_is_not_found(scene):
    refused = scene.claim(task_id="nope")
    assert isinstance(refused, NotFound)
    assert refused.detail["field"] == "task_id"


def test_while_it_is_held_there_is_nothing_to_take(scene):
    grant = scene.held()
    before = scene.state()
    assert scene.claim(task_id="t") == []
    assert scene.claim(task_id="t", handle=grant.handle) == []
    assert scene.state() == before


def test_the_old_holder_may_come_back_for_a_lapsed_task_under_a_new_token(scene):
    first = scene.held()
    scene.pass_ms(TTL_MS)
    (second,) = scene.claim(task_id="t", handle=first.handle)
    assert second.handle.token > first.handle.token
    assert second.took_over.token == first.handle.token
    assert scene.task().losses == 1
    assert scene.causes()[-2:] == [Cause.LAPSED, Cause.CLAIMED]


def test_a_delay_holds_for_everybody_but_the_last_holder(scene):
    first = scene.held()
    scene.ask(Release(handle=first.handle, delay_ms=30_000))
    other = scene.held("other")
    assert scene.claim(task_id="t") == []
    assert scene.claim(task_id="t", handle=other.handle) == [], "a handle of another task does not help"
    (again,) = scene.claim(task_id="t", handle=first.handle)
    scene.ask(Release(handle=again.handle, delay_ms=30_000))
    assert scene.claim(task_id="t", handle=first.handle) == [], "nor does an older handle"


@pytest.mark.parametrize("delay_ms", [30_000, 7_200_000], ids=["store-time", "wall-time"])
def test_once_the_delay_is_over_anybody_may_take_it(scene, delay_ms):
    scene.submit("t", delay_ms=delay_ms)
    scene.pass_ms(delay_ms - 1)
    assert scene.claim(task_id="t") == []
    scene.pass_ms(1)
    assert scene.claim(task_id="t")


def test_a_forged_handle_is_refused_even_where_none_is_needed(scene):
    scene.submit("t")
    refused = scene.claim(task_id="t", handle=Handle("t", 1, "0" * 32))
    assert isinstance(refused, NotFound)
    assert scene.task().state is State.READY


def finish(scene, how):
    grant = scene.held()
    if how == "done":
        scene.complete(grant)
    elif how == "failed":
        scene.ask(Fail(handle=grant.handle, error="no", retry=False))
    else:
        scene.ask(Cancel(task_id="t", reason=""))
        scene.ask(Release(handle=grant.handle))


@pytest.mark.parametrize("how", ["done", "failed", "cancelled"])
def test_a_finished_task_is_a_conflict_that_names_its_state(scene, how):
    finish(scene, how)
    before = scene.state()
    refused = scene.claim(task_id="t")
    assert isinstance(refused, Conflict)
    assert refused.detail["state"] == how
    assert scene.state() == before


def test_a_lapsed_task_to_be_cancelled_is_cancelled_and_a_conflict(scene):
    scene.held()
    scene.ask(Cancel(task_id="t", reason=""))
    scene.pass_ms(TTL_MS)
    refused = scene.claim(task_id="t")
    assert isinstance(refused, Conflict)
    assert refused.detail["state"] == "cancelled"


def test_its_exclusive_key_may_be_busy(scene):
    scene.submit("a", "b", exclusive="key")
    scene.claim(task_id="a")
    assert scene.claim(task_id="b") == []


def test_a_repeated_request_gets_the_same_lease_with_the_time_that_is_left_now(scene):
    scene.submit("t", "u")
    (first,) = scene.claim(request_id="r")
    scene.pass_ms(20_000)
    before = scene.state()
    (again,) = scene.claim(request_id="r")
    assert again.handle == first.handle
    assert (again.left_ms, again.held_ms) == (40_000, 20_000)
    assert scene.state() == before


def test_a_call_that_is_sent_again_gets_what_its_first_try_was_granted(scene):
    scene.submit("t", "u")
    (first,) = scene.claim(call_id="c")
    (again,) = scene.claim(call_id="c", again=True)
    assert again.handle == first.handle
    (other,) = scene.claim(call_id="d", again=True)
    assert other.handle.task_id == "u", "another call is granted anew"


def test_a_call_that_is_sent_again_without_an_id_is_a_new_one(scene):
    scene.submit("t", "u")
    scene.claim()
    assert scene.claim(again=True)[0].handle.task_id == "u"


def test_a_repeated_takeover_says_again_whom_it_took_over(scene):
    scene.held()
    scene.pass_ms(TTL_MS)
    (first,) = scene.claim(holder="B", request_id="r")
    (again,) = scene.claim(holder="B", request_id="r")
    assert again.took_over == first.took_over
    assert again.took_over.holder == "A"


def test_a_repeated_request_whose_lease_has_ended_is_lost_and_grants_nothing_new(scene):
    scene.submit("t", "u")
    (first,) = scene.claim(request_id="r")
    scene.complete(first)
    refused = scene.claim(request_id="r")
    assert isinstance(refused, LeaseLost)
    assert refused.reason == "closed"
    assert scene.task("u").state is State.READY


def test_a_repeated_request_writes_down_the_lapse_that_it_sees(scene):
    scene.submit("t")
    scene.claim(request_id="r")
    scene.pass_ms(TTL_MS)
    refused = scene.claim(request_id="r")
    assert isinstance(refused, LeaseLost)
    assert refused.reason == "expired"
    assert scene.causes()[-1] is Cause.LAPSED


def test_of_several_leases_those_that_still_live_come_back(scene):
    scene.submit("t", "u")
    first, second = scene.claim(n=2, request_id="r")
    scene.complete(first)
    (again,) = scene.claim(n=2, request_id="r")
    assert again.handle == second.handle


def test_an_empty_answer_is_not_remembered(scene):
    assert scene.claim(request_id="r") == []
    scene.submit("t")
    assert scene.claim(request_id="r")


OTHERS = [
    {"n": 2},
    {"ttl_ms": 1_000},
    {"kinds": ["k"]},
    {"kinds": ["*"]},
    {"task_id": "u"},
    {"queues": ["q", "r"]},
]


@pytest.mark.parametrize("other", OTHERS, ids=count())
def test_the_same_request_id_with_other_arguments_is_a_conflict(scene, other):
    scene.submit("t", "u")
    scene.claim(request_id="r")
    before = scene.state()
    refused = scene.claim(**{"request_id": "r"} | other)
    assert isinstance(refused, Conflict)
    assert refused.detail["field"] == "request_id"
    assert scene.state() == before


def test_another_process_may_repeat_the_request_under_another_name(scene):
    scene.submit("t", "u")
    (first,) = scene.claim(request_id="r")
    (again,) = scene.claim(request_id="r", holder="B")
    assert (again.handle, again.holder) == (first.handle, first.holder)


def test_lists_of_other_lengths_are_other_arguments(scene):
    scene.submit("t")
    scene.claim("q", kinds=["|", "k"], request_id="r")
    assert isinstance(scene.claim("q", "|", kinds=["k"], request_id="r"), Conflict)
