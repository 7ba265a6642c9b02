"""What a holder may believe of its lease: facts, status, and `check` before the next step."""

from datetime import UTC, datetime

import pytest

from relet.client.belief import lose_all_by_clock
from relet.core.errors import Invalid, LeaseLost, Unavailable
from relet.core.model import LostReason
from relet.core.trust import Status
from tests.client.line import Line

HELD, DOUBTFUL, LOST = Status.HELD, Status.DOUBTFUL, Status.LOST


def wall(clock, seconds=0):
    return datetime.fromtimestamp(clock.wall_ms() / 1_000 + seconds, UTC)


def test_a_lease_tells_what_it_is_for_and_how_long_it_lasts(db, clock):
    db.submit("q", {"n": [1]}, id="t", kind="k", labels={"a": "b"}, ttl=60)
    lease = db.claim("q", holder="A")
    assert (lease.task_id, lease.queue, lease.kind, lease.holder, lease.attempt) == ("t", "q", "k", "A", 1)
    assert (lease.input, lease.labels, lease.ttl, lease.took_over) == ({"n": [1]}, {"a": "b"}, 60, None)
    assert (lease.expires_in, lease.status, lease.lost.is_set()) == (60, HELD, False)
    assert lease.last_heartbeat == wall(clock)
    assert lease.renew_by == wall(clock, 20)
    assert repr(lease) == f"<Lease task=t token={lease.token} holder=A held>"
    clock.advance(25)
    assert lease.renew_by == wall(clock, -5), "past it the lease is at risk, not lost"
    assert (lease.expires_in, lease.status) == (35, HELD)


def test_its_handle_is_the_lease_in_any_other_process(db, clock):
    db.submit("q", 1, ttl=60)
    lease = db.claim("q")
    clock.advance(10)
    other = db.lease(lease.handle)
    assert (other.token, other.handle, other.expires_in) == (lease.token, lease.handle, 50)
    assert other.renew() == 60
    other.complete(1)
    with pytest.raises(LeaseLost, match="ended by its own holder"):
        lease.renew()


def test_a_handle_of_a_lost_lease_is_lost_from_the_start(db, clock):
    db.submit("q", 1, ttl=60)
    lease = db.claim("q")
    clock.advance(60)
    other = db.lease(lease.handle)
    assert (other.status, other.lost.is_set(), other.expires_in) == (LOST, True, 0)
    with pytest.raises(LeaseLost) as lost:
        other.check()
    assert lost.value.reason == "expired"


@pytest.mark.case("EC-06")
def test_time_counts_from_before_the_request_and_not_from_its_answer(db, clock, monkeypatch):
    db.submit("q", 1, ttl=60)
    real = db.backend.call

    def slow(ask, **more):
        answer = real(ask, **more)
        clock.advance(5)
        return answer

    monkeypatch.setattr(db.backend, "call", slow)
    lease = db.claim("q")
    assert lease.expires_in == 55
    clock.advance(10)
    assert lease.renew() == 60, "what the store said"
    assert lease.expires_in == 55


def test_a_check_passes_while_enough_trusted_time_is_left(db, clock):
    db.submit("q", 1, ttl=60)
    lease = db.claim("q")
    lease.check()
    lease.check(need=57)
    with pytest.raises(LeaseLost, match="57001 ms are needed, the lease is trusted for 57000 more") as short:
        lease.check(need=57.001)
    assert short.value.detail["trusted_ms"] == 57_000
    assert (lease.status, lease.lost.is_set()) == (HELD, False), "too short for that step, and held all the same"
    clock.advance(27)
    lease.check(need="30s")
    with pytest.raises(LeaseLost):
        lease.check(need="31s")
    with pytest.raises(Invalid, match=r"^need: "):
        lease.check(need="soon")


@pytest.mark.parametrize(
    ("end", "reason"),
    [(lambda lease: lease.complete(), "closed"), (lambda lease: lease.fail("x"), "closed"),
     (lambda lease: lease.release(), "released")],
    ids=["complete", "fail", "release"],
)  # fmt: skip
def test_after_its_end_a_lease_is_lost_for_a_reason_of_its_own(db, end, reason):
    db.submit("q", 1)
    lease = db.claim("q")
    end(lease)
    assert (lease.status, lease.expires_in, lease.lost.is_set()) == (LOST, 0, False)
    with pytest.raises(LeaseLost) as lost:
        lease.check()
    assert lost.value.reason == reason


def test_a_check_past_the_deadline_is_a_loss_for_good(db, clock):
    db.submit("q", 1, id="t", ttl=60)
    lease = db.claim("q")
    clock.advance(56.999)
    lease.check()
    clock.advance(0.001)
    with pytest.raises(LeaseLost) as first:
        lease.check()
    assert (first.value.reason, first.value.token, lease.lost.is_set()) == ("expired", lease.token, True)
    assert db.task("t").live, "the store has not given it away yet"
    with pytest.raises(LeaseLost) as second:
        lease.check()
    assert second.value is first.value


def test_verbs_are_judged_by_the_store_alone_even_past_the_own_deadline(db, clock):
    db.submit("q", 1, ttl=60)
    lease = db.claim("q")
    clock.advance(58)
    assert lease.status is LOST
    assert lease.save({"page": 1}) == 1
    lease.complete("just in time")
    assert db.result(lease.task_id) == "just in time"


def test_in_doubt_a_check_renews_first(db, clock):
    db.submit("q", 1, ttl=60)
    lease = db.claim("q")
    clock.advance(10)
    clock.step(3_600)
    lease.check()
    assert (lease.status, lease.expires_in) == (HELD, 60)


def test_in_doubt_a_check_fails_while_nobody_answers(db, clock):
    db.submit("q", 1, ttl=60)
    lease = db.claim("q")
    line = lease._client.backend = Line(db.backend)
    clock.step(-3_600)
    with line.cut():
        for _ in range(2):
            with pytest.raises(Unavailable, match="nobody answers"):
                lease.check()
            assert lease.status is DOUBTFUL
    lease.check()
    assert lease.status is HELD


def test_in_doubt_a_check_hears_of_a_loss(db, clock):
    db.submit("q", 1, id="t", ttl=60)
    lease = db.claim("q")
    db.cancel("t")
    clock.step(3_600)
    with pytest.raises(LeaseLost) as lost:
        lease.check()
    assert lost.value.reason == "cancelled"
    assert lease.lost.is_set()


def test_in_doubt_a_capped_lease_is_still_held_to_its_deadline(db, clock):
    """The store refuses to renew it, and says that time is left."""
    db.submit("q", 1, ttl=60, max_hold=60)
    lease = db.claim("q")
    clock.advance(10)
    clock.step(3_600)
    lease.check()
    assert (lease.status, lease.expires_in) == (HELD, 50)
    clock.advance(47)
    with pytest.raises(LeaseLost) as lost:
        lease.check()
    assert lost.value.reason == "capped"


def test_a_renewal_that_finds_nobody_is_a_miss(db, clock):
    db.submit("q", 1, ttl=60)
    lease = db.claim("q")
    line = lease._client.backend = Line(db.backend)
    with line.cut(), pytest.raises(Unavailable):
        lease.renew()
    assert lease.status is DOUBTFUL
    assert lease.renew() == 60
    assert lease.status is HELD


def test_many_are_renewed_at_once_with_errors_as_values(db, clock):
    for name in "abc":
        db.submit("q", 1, id=name, ttl=60)
    a, b, c = db.claim_many("q", 3)
    db.cancel("b")
    clock.advance(30)
    answers = db.renew_many([a, b, c])
    assert (answers[0], answers[2]) == (60, 60)
    assert answers[1].reason == "cancelled"
    assert (a.status, b.status, c.status) == (HELD, LOST, HELD)


def test_many_are_completed_at_once_with_errors_as_values(db, clock):
    for name in "ab":
        db.submit("q", 1, id=name)
    a, b = db.claim_many("q", 2)
    db.cancel("a")
    lost, done = db.complete_many([(a, 1), (b, 2)])
    assert (lost.reason, done.state, a.lost.is_set()) == ("cancelled", "done", True)
    with pytest.raises(LeaseLost, match="ended by this process"):
        b.check()


def test_the_event_of_a_loss_is_set_whether_it_was_asked_for_before_or_after(db, clock):
    db.submit_many("q", [1, 2], ttl=60)
    before, after = db.claim_many("q", 2)
    event = before.lost
    clock.advance(60)
    for lease in (before, after):
        with pytest.raises(LeaseLost):
            lease.renew()
    assert event is before.lost
    assert event.is_set()
    assert after.lost.is_set()


def test_of_many_those_past_their_deadline_are_lost_and_told_by_one_look_at_the_clock(db, clock):
    db.submit_many("q", range(3), ttl=60)
    leases = db.claim_many("q", 3)
    told = []
    for lease in leases:
        lease.belief.on_lost.append(told.append)
    clock.advance(30)
    leases[1].renew()
    clock.advance(28)
    assert leases[2].status == LOST, "whoever asks sees it, and tells nobody"
    lose_all_by_clock([lease.belief for lease in leases], clock)
    assert [lease.belief.is_lost for lease in leases] == [True, False, True]
    assert [error.token for error in told] == [leases[0].token, leases[2].token]


def test_one_whose_news_come_from_another_process_is_asked_before_it_is_lost_or_kept(db, clock):
    db.submit("q", 1, ttl=60)
    belief = db.claim("q").belief
    belief.news = lambda: belief.trust.lose(LostReason.SUPERSEDED)
    lose_all_by_clock([belief], clock)
    assert (belief.is_lost, belief.cause.reason) == (True, LostReason.SUPERSEDED)
