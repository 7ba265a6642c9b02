"""Each verb of a holder against each way to have lost a lease: the answer, and what it changed."""

import msgspec
import pytest

from relet.core.errors import Conflict, Error, LeaseLost, NotFound
from relet.core.model import Handle, State
from relet.core.rules.cancel import Cancel
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.fail import Fail
from relet.core.rules.finish import Ended
from relet.core.rules.inspect import Rejections
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew
from relet.core.rules.save import Save
from tests.core.scene import TTL_MS

RAW = msgspec.Raw(b"1")
VERBS = {
    "renew": lambda handle: Renew(handles=[handle]),
    "save": lambda handle: Save(handle=handle, name="main", value=RAW),
    "complete": lambda handle: Complete(completions=[Completion(handle=handle, result=RAW)]),
    "fail": lambda handle: Fail(handle=handle, error="no", retry=False),
    "release": lambda handle: Release(handle=handle),
}


def ask(scene, verb, handle):
    """The outcome for the one lease."""
    answer = scene.ask(VERBS[verb](handle))
    answer = getattr(answer, "outcomes", answer)
    return answer[0] if isinstance(answer, list) else answer


def expired(scene):
    grant = scene.held()
    scene.pass_ms(TTL_MS)
    return grant


def superseded(scene):
    grant = expired(scene)
    assert scene.claim(holder="B")
    return grant


def lapsed_and_written_down(scene):
    grant = expired(scene)
    assert scene.claim("elsewhere") == []
    return grant


def released(scene):
    grant = scene.held()
    ask(scene, "release", grant.handle)
    return grant


def completed(scene):
    grant = scene.held()
    ask(scene, "complete", grant.handle)
    return grant


def failed(scene):
    grant = scene.held()
    ask(scene, "fail", grant.handle)
    return grant


def to_be_cancelled(scene):
    grant = scene.held()
    scene.ask(Cancel(task_id="t", reason="no need"))
    return grant


def to_be_cancelled_and_expired(scene):
    grant = to_be_cancelled(scene)
    scene.pass_ms(TTL_MS)
    return grant


def capped(scene):
    grant = scene.held(max_hold_ms=1_000)
    scene.pass_ms(1_000)
    return grant


LOST = [
    (expired, "expired", set()),
    (superseded, "superseded", set()),
    (lapsed_and_written_down, "expired", set()),
    (released, "released", {"release"}),
    (completed, "closed", {"complete"}),
    (failed, "closed", {"fail"}),
    (to_be_cancelled, "cancelled", {"fail", "release"}),
    (to_be_cancelled_and_expired, "cancelled", set()),
    (capped, "capped", set()),
]
REFUSED = [(how, reason, verb) for how, reason, taken in LOST for verb in VERBS if verb not in taken]
TAKEN = [(how, verb) for how, _, taken in LOST for verb in sorted(taken)]


@pytest.mark.parametrize("verb", VERBS)
def test_a_live_lease_takes_every_verb(scene, verb):
    assert not isinstance(ask(scene, verb, scene.held().handle), Error)


@pytest.mark.parametrize("verb", VERBS)
def test_one_millisecond_before_its_end_a_lease_is_live(scene, verb):
    grant = scene.held()
    scene.pass_ms(TTL_MS - 1)
    assert not isinstance(ask(scene, verb, grant.handle), Error)


@pytest.mark.parametrize(("how", "reason", "verb"), REFUSED, ids=[f"{v}-{h.__name__}" for h, _, v in REFUSED])
def test_a_lost_lease_takes_no_verb_and_says_why(scene, how, reason, verb):
    grant = how(scene)
    current = scene.task().token
    refused = ask(scene, verb, grant.handle)
    assert isinstance(refused, LeaseLost)
    assert (refused.reason, refused.token, refused.current_token) == (reason, grant.handle.token, current)
    assert (refused.detail["task_id"], refused.detail["holder"]) == ("t", "A")
    assert "Nothing was written; stop this work and discard it" in str(refused)


@pytest.mark.parametrize(("how", "reason", "verb"), REFUSED, ids=[f"{v}-{h.__name__}" for h, _, v in REFUSED])
def test_a_refusal_changes_nothing_but_a_lapse_that_it_saw(scene, how, reason, verb):
    grant = how(scene)
    unwritten = scene.backend.store._write.connection().execute("SELECT count(*) FROM leases WHERE ended IS NULL")
    saw_lapse = unwritten.fetchone() != (0,) and not scene.task().live
    before, events = scene.state(), len(scene.events())
    first = ask(scene, verb, grant.handle)
    assert (scene.state() == before) is not saw_lapse
    assert len(scene.events()) == events + saw_lapse
    settled = scene.state()
    assert ask(scene, verb, grant.handle).reason == first.reason, "asked again, it says the same"
    assert scene.state() == settled


@pytest.mark.parametrize(("how", "verb"), TAKEN, ids=[f"{v}-{h.__name__}" for h, v in TAKEN])
def test_the_verb_that_ended_a_lease_may_be_repeated_and_gives_way_after_a_cancel(scene, how, verb):
    grant = how(scene)
    first = ask(scene, verb, grant.handle)
    assert isinstance(first, Ended)
    before = scene.state()
    assert ask(scene, verb, grant.handle) == first
    assert scene.state() == before


@pytest.mark.parametrize("verb", ["fail", "release"])
def test_whoever_gives_way_after_a_cancel_makes_the_task_cancelled(scene, verb):
    grant = to_be_cancelled(scene)
    ended = ask(scene, verb, grant.handle)
    assert (ended.state, ended.reason) == (State.CANCELLED, "no need")
    task = scene.task()
    assert (task.state, task.reason, task.failures, task.losses) == (State.CANCELLED, "no need", 0, 0)


@pytest.mark.parametrize(
    ("how", "other"),
    [
        (completed, lambda handle: Complete(completions=[Completion(handle=handle, result=msgspec.Raw(b"2"))])),
        (failed, lambda handle: Fail(handle=handle, error="other words", retry=False)),
        (failed, lambda handle: Fail(handle=handle, error="no", retry=True)),
        (failed, lambda handle: Fail(handle=handle, error="no", retry=False, code="E")),
        (released, lambda handle: Release(handle=handle, delay_ms=5)),
    ],
    ids=["result", "error", "retry", "code", "delay"],
)
def test_the_same_verb_with_other_content_is_a_conflict(scene, how, other):
    grant = how(scene)
    before = scene.state()
    answer = scene.ask(other(grant.handle))
    refused = answer.outcomes[0] if hasattr(answer, "outcomes") else answer
    assert isinstance(refused, Conflict)
    assert "the first one stands" in str(refused)
    assert scene.state() == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "changed",
    [{"secret": "0" * 32}, {"secret": ""}, {"token": 999}, {"token": 2}, {"token": -1}, {"token": 1 << 53}],
    ids=["wrong-secret", "no-secret", "no-such-token", "secret-of-another-token", "below-all", "beyond-all"],
)
def test_a_handle_that_the_store_never_gave_out_is_a_stranger(scene, verb, changed):
    grant = scene.held()
    scene.held("another")
    before = scene.state()
    handle = msgspec.structs.replace(grant.handle, **changed)
    refused = ask(scene, verb, handle)
    assert isinstance(refused, NotFound)
    assert (refused.code, refused.detail["token"]) == ("RELET-HANDLE", handle.token)
    assert scene.state() == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("older_state", "claimed", "reason", "current"),
    [
        ("DELETE FROM tasks", 0, "expired", None),
        ("UPDATE tasks SET token = 0, state = 'waiting'", 0, "expired", None),
        ("UPDATE tasks SET token = 0, state = 'ready'", 1, "superseded", 2),
    ],
    ids=["no-such-task", "never-claimed", "claimed-since"],
)
def test_a_lease_that_the_store_granted_and_has_no_record_of_is_lost(
    scene, verb, older_state, claimed, reason, current
):
    grant = scene.held()
    scene.backend.store._write.connection().execute(f"PRAGMA foreign_keys = off; DELETE FROM leases; {older_state}")
    assert len(scene.claim()) == claimed
    refused = ask(scene, verb, grant.handle)
    assert isinstance(refused, LeaseLost)
    assert (refused.code, refused.reason, refused.current_token) == ("RELET-RESTORED", reason, current)
    assert f"task t: token {grant.handle.token} is not valid any more" in str(refused)


@pytest.mark.parametrize("verb", VERBS)
def test_the_name_of_the_holder_proves_nothing(scene, verb):
    grant = superseded(scene)
    again = scene.task()
    assert again.holder == "B"
    forged = Handle("t", again.token, grant.handle.secret)
    assert isinstance(ask(scene, verb, forged), NotFound)


def test_a_refused_result_is_kept_for_the_next_holder_to_read(scene):
    grant = superseded(scene)
    for result in (1, {"late": True}):
        scene.complete(grant, result=result)
    feed = scene.ask(Rejections(task_id="t"))
    assert [(item.verb, item.reason, item.holder, item.late_ms) for item in feed] == [
        ("complete", "superseded", "A", 0)
    ] * 2
    assert [item.result for item in feed] == [{"late": True}, None], "the newest of a token, within the limit"
