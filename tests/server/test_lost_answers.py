"""Answers that are lost on the way, requests that never arrive: each thing is done once, under one token."""

import pytest

import relet
from tests.server.reached import reached
from tests.waiting import Gate, eventually


@pytest.fixture
def reach(tmp_path):
    with reached(f"sqlite:///{tmp_path / 'work.db'}") as reach:
        yield reach


def kinds(db, task_id):
    return [str(event.kind) for event in db.history(task_id)]


LOSSES = pytest.mark.parametrize("lose", ["cut_reply", "cut_before", "say_twice"])


@LOSSES
def test_ht_01_a_claim_whose_reply_was_lost_is_answered_with_the_same_lease(reach, lose):
    db, task = reach.client(), reach.home.submit("q")
    getattr(reach.proxy, lose)(b"POST /v1/claim")
    lease = db.claim("q")
    assert reach.proxy.fired.wait(10)
    assert (lease.task_id, lease.attempt) == (task.id, 1)
    assert kinds(reach.home, task.id) == ["submitted", "claimed"]
    lease.complete("done")
    assert reach.home.task(task.id).token == lease.token


@LOSSES
def test_a_result_whose_reply_was_lost_is_taken_once(reach, lose):
    db, task = reach.client(), reach.home.submit("q")
    lease = db.claim("q")
    getattr(reach.proxy, lose)(b"POST /v1/complete")
    lease.complete({"n": 1})
    assert reach.proxy.fired.wait(10)
    assert reach.home.result(task.id) == {"n": 1}
    assert kinds(reach.home, task.id).count("completed") == 1


@LOSSES
def test_a_result_and_the_next_claim_are_both_taken_once(reach, lose):
    db = reach.client()
    one, other = reach.home.submit("q"), reach.home.submit("q")
    lease = db.claim("q")
    getattr(reach.proxy, lose)(b"POST /v1/complete")
    following = lease.complete("done", claim_next=True)
    assert reach.proxy.fired.wait(10)
    assert (reach.home.task(one.id).state, following.task_id) == ("done", other.id)
    assert kinds(reach.home, other.id) == ["submitted", "claimed"]


@LOSSES
def test_a_task_whose_reply_was_lost_is_made_once(reach, lose):
    db = reach.client()
    getattr(reach.proxy, lose)(b"POST /v1/submit")
    task = db.submit("q", {"n": 1})
    assert reach.proxy.fired.wait(10)
    assert [one.id for one in reach.home.tasks()] == [task.id]


def test_what_cannot_be_repeated_is_told_as_unknown(reach):
    db, task = reach.client(), reach.home.submit("q")
    reach.home.claim("q").fail("no", retry=False)
    reach.proxy.cut_reply(b"POST /v1/requeue")
    with pytest.raises(relet.OutcomeUnknown, match="may or may not have happened"):
        db.requeue(task.id)
    assert reach.home.task(task.id).state == "ready"


def test_ht_03_heartbeats_that_fail_for_a_while_disturb_nobody(reach):
    """Refused connections, and replies lost after they were applied; then the network is back within the ttl."""
    db = reach.client()
    task = reach.home.submit("q", ttl="3s")
    lease = db.claim("q")
    first = reach.home.task(task.id).expires_at
    with lease.keep():
        reach.proxy.drop_new()
        reach.proxy.cut()
        eventually(lambda: lease.status == "doubtful")
        reach.proxy.pass_on()
        eventually(lambda: lease.status == "held")
        reach.proxy.cut_reply(b"POST /v1/renew")
        assert reach.proxy.fired.wait(10)
        eventually(lambda: lease.status == "held")
        assert reach.home.task(task.id).expires_at > first
        lease.check()
    lease.complete("done")
    assert (reach.home.task(task.id).attempt, kinds(reach.home, task.id)) == (
        1,
        ["submitted", "claimed", "completed"],
    )


def test_who_is_cut_off_past_the_deadline_stops_before_anybody_else_begins(reach):
    db, task = reach.client(holder="cut off"), reach.home.submit("q", ttl="1s")
    lease = db.claim("q")

    seen = []

    def worked_while_the_network_was_away():
        with lease.keep():
            reach.proxy.black_hole()
            seen.append(lease.lost.wait(10))
            seen.append(reach.home.task(task.id).live)

    with pytest.raises(relet.LeaseLost):
        worked_while_the_network_was_away()
    assert seen == [True, True], "the holder lets go before the store does"
    eventually(lambda: not reach.home.task(task.id).live)
    other = reach.home.claim("q", holder="other")
    assert other.token > lease.token
    reach.proxy.pass_on()
    with pytest.raises(relet.LeaseLost):
        lease.complete("too late")
    other.complete("in time")
    assert reach.home.result(task.id) == "in time"


def test_a_worker_goes_on_when_the_network_is_back(reach):
    app, db = relet.App(), reach.client()
    begun, gate = Gate(), Gate()

    @app.task("q")
    def work(run, n):
        if n == 0:
            begun.set()
            gate.pass_through()
        return n

    tasks = [work.submit(reach.home, n) for n in range(6)]
    with app.worker(db, concurrency=2):
        begun.pass_through()
        reach.proxy.drop_new()
        reach.proxy.cut()
        gate.set()
        eventually(lambda: reach.proxy.connections == 0)
        reach.proxy.pass_on()
        eventually(lambda: all(reach.home.task(task.id).state == "done" for task in tasks))
    assert all((reach.home.task(task.id).attempt, reach.home.task(task.id).losses) == (1, 0) for task in tasks)


def test_the_very_same_request_twice_is_answered_twice_alike(reach):
    """As a proxy does that sends again by itself."""
    db = reach.client()
    reach.home.submit("q")
    body = b'{"holder":"A","queues":["q"],"request_id":"r-1"}'
    headers = {"Content-Type": "application/json"}
    first, second = (
        db.backend.line.ask("POST", "/v1/claim", writes=True, content=body, headers=headers).json() for _ in range(2)
    )
    assert [grant["handle"] for grant in first] == [grant["handle"] for grant in second]
    assert len(first) == 1


@pytest.mark.parametrize("named", [{"request_id": "r-1"}, {}])
def test_a_claim_that_arrives_twice_takes_one_task(reach, named):
    db, tasks = reach.client(), [reach.home.submit("q") for _ in range(2)]
    reach.proxy.say_twice(b"POST /v1/claim")
    lease = db.claim("q", **named)
    assert reach.proxy.fired.wait(10)
    assert lease.task_id == tasks[0].id
    assert [reach.home.task(task.id).state for task in tasks] == ["leased", "ready"]


def test_a_waiter_hears_of_a_change_and_does_not_only_look(reach, monkeypatch):
    monkeypatch.setattr("relet.noticing.LOOK_ANYWAY_S", 600)
    monkeypatch.setattr("relet.noticing.LOOK_UNTOLD_S", 600)
    watch = reach.client().backend.watch()
    eventually(lambda: watch._teller.is_told)
    while watch.wait(0.3):
        pass  # what came before
    reach.home.submit("q")
    assert watch.wait(10)


def test_an_answer_that_something_else_gave_says_nothing_of_what_was_done(reach):
    """As a portal gives its own page with a status of success."""
    db, task = reach.client(), reach.home.submit("q")
    reach.home.claim("q").fail("no", retry=False)
    through = reach.wire.app

    async def portal(scope, receive, send):
        await through(scope, receive, nobody)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": b"<html>"})

    async def nobody(message):
        pass

    reach.wire.app = portal
    with pytest.raises(relet.OutcomeUnknown, match="<html>"):
        db.requeue(task.id)
    with pytest.raises(relet.Unavailable, match="<html>"):
        db.task(task.id)
    assert reach.home.task(task.id).state == "ready"
