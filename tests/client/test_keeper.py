"""The keeper of heartbeats, round by round: when it renews, whom it gives up, and what it tells whom."""

import threading

import pytest

import relet
from relet.core.errors import Invalid, LeaseLost, OutcomeUnknown, Unavailable, UpgradeRequired
from relet.core.model import End
from relet.core.trust import Status
from tests.waiting import eventually

HELD, DOUBTFUL, LOST = Status.HELD, Status.DOUBTFUL, Status.LOST


def tokens(renewals):
    return [[handle.token for handle in ask.handles] for ask in renewals]


def test_a_lease_is_renewed_a_third_of_its_ttl_after_the_last_beat(holder):
    lease = holder.hold(ttl=60)
    holder.pass_s(17.9, lease)
    assert holder.line.sent == [], "nothing is due yet"
    holder.pass_s(2.1, lease)
    assert len(holder.line.renewals()) == 1
    assert lease.expires_in == 60
    holder.round(lease)
    holder.pass_s(17.9, lease)
    assert len(holder.line.renewals()) == 1
    holder.pass_s(2.1, lease)
    assert len(holder.line.renewals()) == 2


def test_a_beat_counts_from_before_it_was_sent(holder, monkeypatch):
    lease = holder.hold(ttl=60)
    real = holder.line.call

    def slow(ask, **more):
        answer = real(ask, **more)
        holder.clock.advance(5)
        return answer

    monkeypatch.setattr(holder.line, "call", slow)
    holder.pass_s(20, lease)
    assert lease.expires_in == 55


def test_a_heartbeat_waits_for_a_busy_store_no_longer_than_a_sixth_of_the_shortest_ttl(holder):
    long = holder.hold(ttl=120)
    holder.clock.advance(38)
    short = holder.hold(ttl=6)
    holder.pass_s(2, long, short)
    assert tokens(holder.line.renewals()) == [[long.token, short.token]]
    assert holder.line.patience_ms == [1_000]


def test_leases_that_are_due_together_are_renewed_in_one_request(holder):
    first, second, later = holder.hold(), holder.hold(), holder.hold(ttl=90)
    holder.pass_s(20, first, second, later)
    assert tokens(holder.line.renewals()) == [[first.token, second.token]]


def test_a_lease_that_is_nearly_due_goes_along(holder):
    first = holder.hold()
    holder.clock.advance(1.9)
    second = holder.hold()
    holder.pass_s(18.1, first, second)
    assert tokens(holder.line.renewals()) == [[first.token, second.token]]


@pytest.mark.case("EC-08")
def test_another_interval_may_be_asked_for_up_to_half_the_ttl(holder):
    lease = holder.hold(ttl=60)
    with lease.keep(interval=30):
        holder.pass_s(26.9, lease)
        assert holder.line.sent == []
    with pytest.raises(Invalid, match="one lost beat would lose the lease"), lease.keep(interval=30.1):
        pass


def test_while_nobody_answers_the_lease_is_doubtful_and_then_held_again(holder):
    lease = holder.hold(ttl=60)
    told = []
    lease.belief.on_lost.append(told.append)
    with holder.line.cut():
        holder.pass_s(20, lease)
        assert lease.status is DOUBTFUL
        holder.pass_s(2.9, lease)
        assert len(holder.line.renewals()) == 1, "the next try comes a twelfth of the ttl later"
        holder.pass_s(2.1, lease)
        assert len(holder.line.renewals()) == 2
        assert (lease.status, lease.expires_in) == (DOUBTFUL, 35)
    holder.pass_s(5, lease)
    assert (lease.status, lease.expires_in) == (HELD, 60)
    assert not lease.lost.is_set()
    assert told == []


@pytest.mark.case("HT-03")
@pytest.mark.parametrize("error", [Unavailable("x"), OutcomeUnknown("x"), UpgradeRequired("x")], ids=lambda e: e.code)
def test_no_error_but_a_loss_ends_the_holding(holder, error):
    lease = holder.hold(ttl=60)
    with holder.line.cut(error):
        holder.pass_s(20, lease)
    assert lease.status is DOUBTFUL
    holder.pass_s(5, lease)
    assert lease.status is HELD


@pytest.mark.case("HT-03")
def test_at_its_own_deadline_a_holder_lets_go_before_the_store_does(holder):
    lease = holder.hold(ttl=60)
    told = []
    lease.belief.on_lost.append(told.append)
    with holder.line.cut():
        for _ in range(11):
            holder.pass_s(5, lease)
        assert (lease.status, told) == (DOUBTFUL, [])
        holder.clock.advance(1.9)
        assert lease.status is DOUBTFUL
        holder.pass_s(0.1, lease)
        assert (lease.status, lease.belief.cause.reason) == (LOST, "expired")
    assert holder.store.task(lease.task_id).live, "for three seconds more, in which nobody acts"
    assert told == [lease.belief.cause]
    assert lease.lost.is_set()
    assert lease.expires_in == 0


def test_a_holder_that_is_lost_by_its_own_clock_sends_one_release_and_nothing_else(holder):
    lease = holder.hold(ttl=60)
    holder.line.sent.clear()
    with holder.line.cut():
        for _ in range(12):
            holder.pass_s(5, lease)
        before = len(holder.line.sent)
        assert len(holder.line.releases()) == 1
        assert holder.line.sent[-1] is holder.line.releases()[0]
    for _ in range(20):
        holder.pass_s(5, lease)
    assert len(holder.line.sent) == before


def test_a_release_that_arrives_is_the_lapse_that_it_is_and_gives_the_task_back_at_once(holder):
    lease = holder.hold(ttl=60)
    holder.pass_s(57, lease)
    assert lease.status is LOST
    task = holder.store.task(lease.task_id)
    assert (task.state, task.losses, task.attempt) == ("ready", 1, 2)
    assert holder.line.releases()[0].handle.token == lease.token
    assert holder.line.patience_ms[-1] == 10_000


def test_giving_leases_back_does_not_hold_up_the_beats_of_others(holder):
    lost = [holder.hold(ttl=6) for _ in range(3)]
    kept = holder.hold(ttl=15)
    holder.pass_s(5.7, *lost, kept)
    assert [type(ask).__name__ for ask in holder.line.sent] == ["Renew", "Release", "Release", "Release"]


def test_whoever_asks_first_learns_of_the_loss_and_the_release_is_sent_all_the_same(holder):
    lease = holder.hold(ttl=60)
    told = []
    lease.belief.on_lost.append(told.append)
    holder.clock.advance(57)
    with pytest.raises(LeaseLost, match="its deadline passed on this machine's own clock"):
        lease.check()
    assert len(told) == 1
    holder.round(lease)
    holder.round(lease)
    assert (len(holder.line.releases()), len(told)) == (1, 1)


def test_a_loss_that_was_noted_while_nobody_looked_is_told_at_once(holder, monkeypatch):
    """Asking for the status marks the belief as lost; a keeper that sees nothing to wait for must not sleep on it."""
    monkeypatch.setattr(holder.clock, "wait", lambda condition, seconds: condition.wait(seconds))
    lease = holder.hold(ttl=60)
    holder.clock.advance(57)
    assert lease.status is LOST
    assert not lease.lost.is_set()
    holder.keeper.add(lease.belief)
    assert lease.lost.wait(15)
    eventually(holder.line.releases)
    holder.close()


def test_a_loss_that_the_store_tells_is_final_and_sends_nothing_back(holder):
    lease = holder.hold(ttl=60)
    told = []
    lease.belief.on_lost += [told.append, told.append]
    holder.store.cancel(lease.task_id, "no need")
    holder.pass_s(20, lease)
    assert (lease.status, lease.belief.cause.reason) == (LOST, "cancelled")
    assert told == [lease.belief.cause] * 2, "each once"
    sent = len(holder.line.sent)
    for _ in range(5):
        holder.pass_s(60, lease)
    assert len(holder.line.sent) == sent
    assert told == [lease.belief.cause] * 2


def test_ll_01_a_takeover_is_told_once_within_a_heartbeat_whatever_errors_came_before(holder):
    lease = holder.hold(ttl=60)
    told = []
    lease.belief.on_lost.append(told.append)
    for error in (Unavailable("too many requests"), OutcomeUnknown("cut off")):
        with holder.line.cut(error):
            holder.pass_s(20 if error.retryable else 5, lease)
        assert (lease.status, told) == (DOUBTFUL, [])
    holder.store.lease(lease.handle).release()
    successor = holder.store.claim("q", holder="B")
    holder.pass_s(5, lease)
    assert (lease.status, lease.lost.is_set()) == (LOST, True)
    assert told == [lease.belief.cause]
    assert told[0].current_token == successor.token
    with pytest.raises(LeaseLost) as lost:
        lease.check()
    assert lost.value is told[0]
    for verb in (lease.renew, lambda: lease.save("late")):
        with pytest.raises(LeaseLost):
            verb()
    for _ in range(5):
        holder.pass_s(20, lease)
    assert len(told) == 1


def test_the_loss_of_one_lease_does_not_touch_the_others(holder):
    gone, kept = holder.hold(), holder.hold()
    holder.store.cancel(gone.task_id)
    holder.pass_s(20, gone, kept)
    assert (gone.status, kept.status) == (LOST, HELD)
    assert kept.expires_in == 60


def test_a_lease_that_its_own_process_ended_is_forgotten_in_silence(holder):
    lease = holder.hold()
    told = []
    lease.belief.on_lost.append(told.append)
    lease.complete(1)
    holder.pass_s(20, lease)
    assert holder.line.renewals() == []
    assert (lease.belief.ended, told, lease.lost.is_set()) == (End.COMPLETED, [], False)


@pytest.mark.case("ZC-04")
def test_a_beat_that_crosses_with_the_end_of_its_lease_is_no_loss(holder, monkeypatch):
    lease = holder.hold()
    told = []
    lease.belief.on_lost.append(told.append)
    real = holder.line.call

    def complete_first(ask, **more):
        monkeypatch.setattr(holder.line, "call", real)
        lease.complete(1)
        return real(ask, **more)

    monkeypatch.setattr(holder.line, "call", complete_first)
    holder.pass_s(20, lease)
    assert (told, lease.lost.is_set()) == ([], False)


def test_a_capped_lease_is_held_to_its_deadline_without_further_beats(holder):
    lease = holder.hold(ttl=60, max_hold=90)
    holder.pass_s(20, lease)
    assert lease.expires_in == 60
    holder.pass_s(20, lease)
    assert (lease.status, lease.expires_in) == (HELD, 50)
    beats = len(holder.line.renewals())
    for _ in range(4):
        holder.pass_s(11, lease)
        assert lease.status is HELD
        lease.check()
    assert len(holder.line.renewals()) == beats
    holder.pass_s(3, lease)
    assert (lease.status, lease.belief.cause.reason) == (LOST, "capped")


def test_a_beat_that_is_refused_as_capped_leaves_the_lease_held(holder):
    lease = holder.hold(ttl=60, max_hold=60)
    holder.pass_s(20, lease)
    assert (lease.status, lease.expires_in) == (HELD, 40)
    holder.pass_s(20, lease)
    assert len(holder.line.renewals()) == 1
    assert lease.complete("in time") is None


def test_a_jump_between_the_clocks_makes_the_keeper_look_at_once(holder):
    lease = holder.hold(ttl=60)
    holder.round(lease)
    holder.clock.step(3_600)
    holder.round(lease)
    assert len(holder.line.renewals()) == 1
    assert lease.status is HELD


def test_a_fault_of_a_listener_does_not_end_the_keeper(holder, caplog):
    bad, good = holder.hold(), holder.hold()
    holder.clock.on_move(holder.keeper.poke)

    def fault(_lost):
        raise ValueError("in a callback")

    bad.belief.on_lost.append(fault)
    with bad.keep_quietly(), good.keep_quietly():
        holder.store.cancel(bad.task_id)
        holder.clock.advance(20)
        eventually(bad.lost.is_set)
        eventually(lambda: good.expires_in == 60)
        eventually(lambda: "met a fault and goes on" in caplog.text)
    holder.close()


def test_the_thread_renews_on_its_own_and_stops_when_the_client_is_closed(holder):
    holder.clock.on_move(holder.keeper.poke)
    lease = holder.hold(ttl=60)
    with lease.keep_quietly():
        for _ in range(5):
            holder.clock.advance(20)
            eventually(lambda: lease.expires_in == 60)
    thread = holder.keeper._thread
    assert thread.daemon
    holder.close()
    assert not thread.is_alive()
    holder.keeper.add(lease.belief)
    assert holder.keeper._kept == {}, "a closed keeper takes nothing more"


def test_whoever_is_told_of_a_loss_may_wait_for_another_thread_that_looks_at_the_lease(holder):
    lease = holder.hold()
    looked, in_time = threading.Event(), []

    def ask_elsewhere(_lost):
        threading.Thread(target=lambda: (lease.lost, looked.set())).start()
        in_time.append(looked.wait(10))

    lease.belief.on_lost.append(ask_elsewhere)
    holder.clock.advance(57)
    holder.round(lease)
    assert in_time == [True]


def test_a_lease_that_is_due_before_all_others_wakes_the_keeper(tmp_path):
    with relet.connect(f"sqlite:///{tmp_path}/relet.db") as db:
        db.submit_many("q", [1, 2])
        with db.claim("q", ttl=3_600) as long:
            eventually(lambda: db.keeper._wakes_ms)  # it sleeps until the first one is due
            with db.claim("q", ttl=1) as short:
                before = db.task(short.task_id).last_heartbeat
                eventually(lambda: db.task(short.task_id).last_heartbeat > before)
                short.complete()
            long.complete()
