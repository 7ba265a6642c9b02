"""lapse and sweep: a lease that ended by silence, what its task does next, and how a crowd is spread."""

from collections import Counter

import pytest

from relet.core import limits
from relet.core.errors import LeaseLost
from relet.core.model import Cause, FailReason, GivenBack, LapsedBy, LostReason, State
from relet.core.operation import Operation
from relet.core.rules.cancel import Cancel
from relet.core.rules.fail import Fail
from relet.core.rules.finish import Ended
from relet.core.rules.lapse import close_lapsed
from relet.core.rules.release import Release
from relet.core.rules.sweep import Sweep, Swept

SECOND_MS = 1_000


def lose(scene, **claimed):
    """Claim the one task and let it lapse; its event."""
    (grant,) = scene.claim(**claimed)
    scene.pass_ms(grant.ttl_ms)
    assert scene.ask(Sweep()).lapsed == 1
    return scene.events()[-1]


def let_go(scene, grant):
    """What a holder sends whose own clock says that the lease is over."""
    return scene.ask(Release(handle=grant.handle, why=GivenBack.HOLDER_EXPIRED))


def test_the_first_loss_makes_the_task_ready_at_once(scene):
    scene.submit("t", ttl_ms=SECOND_MS)
    event = lose(scene)
    assert event.kind is Cause.LAPSED
    assert event.detail == {
        "why": "expired", "expired_ms_ago": 0, "silent_ms": SECOND_MS, "losses": 1, "delay_ms": 0,
    }  # fmt: skip
    task = scene.task()
    assert (task.state, task.losses, task.failures, task.attempt) == (State.READY, 1, 0, 2)
    assert (task.code, task.due_at) == ("RELET-LAPSED", None)
    assert "the lease of A lapsed" in task.error


def test_later_losses_wait_for_the_backoff(scene):
    scene.submit("t", ttl_ms=SECOND_MS, max_losses=10, max_attempts=10)
    delays = []
    for _ in range(4):
        delays.append(lose(scene).detail["delay_ms"])
        scene.pass_ms(delays[-1])
    assert delays[0] == 0
    assert all(wait <= delay < wait * 1.2 for wait, delay in zip([1_000, 2_000, 4_000], delays[1:], strict=True))


def test_a_lapse_within_an_outage_is_no_loss_until_the_holder_is_heard_again(scene):
    connection = scene.backend.store._write.connection()
    scene.submit("t", ttl_ms=SECOND_MS)
    scene.claim()
    connection.execute("UPDATE leases SET excused = 1")
    scene.pass_ms(SECOND_MS)
    assert scene.ask(Sweep()).lapsed == 1
    task = scene.task()
    assert (task.state, task.losses, task.attempt) == (State.READY, 0, 1)
    (grant,) = scene.claim()
    connection.execute("UPDATE leases SET excused = 1")
    scene.renew(grant)
    scene.pass_ms(SECOND_MS)
    assert scene.ask(Sweep()).lapsed == 1
    assert (scene.task().losses, scene.task().attempt) == (1, 2)


@pytest.mark.parametrize(
    ("limit", "reason", "words"),
    [
        ({"max_losses": 2}, FailReason.LOSSES, "its lease lapsed 2 times without a save in between"),
        ({"max_attempts": 2}, FailReason.ATTEMPTS, "out of attempts: 0 failures and 2 losses, 2 allowed"),
    ],
    ids=["losses", "attempts"],
)
def test_too_many_losses_end_in_a_dead_letter_that_says_why(scene, limit, reason, words):
    scene.submit("t", ttl_ms=SECOND_MS, **limit)
    lose(scene)
    scene.pass_ms(10_000)
    event = lose(scene, holder="B")
    task = scene.task()
    assert (event.kind, task.state, task.reason) == (Cause.FAILED, State.FAILED, reason)
    assert words in task.error
    assert "B" in task.error, "who held it last"


def test_failures_and_losses_count_together(scene):
    scene.submit("t", ttl_ms=SECOND_MS, max_attempts=2)
    (grant,) = scene.claim()
    scene.ask(Fail(handle=grant.handle, error="no", delay_ms=0))
    lose(scene)
    assert "out of attempts: 1 failures and 1 losses" in scene.task().error


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (GivenBack.HOLDER_EXPIRED, "it was let go by its holder's own clock, 900 ms after its last heartbeat"),
        (GivenBack.MAX_SILENCE, "nothing moved under it for as long as its handler allows (max_silence)"),
    ],
)
def test_what_a_holder_lets_go_by_its_own_clock_is_the_lapse_that_it_is_only_earlier(scene, why, words):
    scene.submit("t", ttl_ms=SECOND_MS)
    (grant,) = scene.claim()
    scene.pass_ms(900)
    assert scene.ask(Release(handle=grant.handle, why=why)) == Ended(state=State.READY)
    event = scene.events()[-1]
    assert event.kind is Cause.LAPSED
    assert event.detail == {"why": "expired", "by": why, "silent_ms": 900, "losses": 1, "delay_ms": 0}
    task = scene.task()
    assert (task.state, task.losses, task.attempt, task.code) == (State.READY, 1, 2, "RELET-LAPSED")
    assert words in task.error
    (after,) = scene.claim(holder="B")
    assert (after.took_over.token, after.took_over.reason) == (grant.handle.token, LostReason.EXPIRED)


def test_work_that_starves_its_own_heartbeat_waits_for_the_backoff_and_ends_in_a_dead_letter(scene):
    scene.submit("t", ttl_ms=SECOND_MS, max_losses=3)
    delays = []
    for _ in range(3):
        (grant,) = scene.claim(task_id="t")
        scene.pass_ms(900)
        delays.append(let_go(scene, grant).delay_ms)
        scene.pass_ms(delays[-1])
    assert delays[0] == delays[2] == 0
    assert 1_000 <= delays[1] < 1_200
    assert (scene.task().state, scene.task().reason) == (State.FAILED, FailReason.LOSSES)
    assert "lapsed 3 times without a save" in scene.task().error
    assert "let go by its holder's own clock" in scene.task().error, "that worker lives, and is to be looked at"


def test_letting_go_twice_is_answered_alike_whatever_became_of_the_task(scene):
    grant = scene.held(ttl_ms=SECOND_MS, max_losses=1)
    first = let_go(scene, grant)
    assert first == Ended(state=State.FAILED, reason="losses")
    assert "its lease lapsed once without a save in between" in scene.task().error
    scene.pass_ms(SECOND_MS)
    assert let_go(scene, grant) == first
    assert scene.causes().count(Cause.FAILED) == 1


def test_what_has_lapsed_or_was_let_go_is_lost_to_every_other_verb(scene):
    late, gone = scene.held("late", ttl_ms=SECOND_MS), scene.held("gone", ttl_ms=60_000)
    let_go(scene, gone)
    scene.pass_ms(SECOND_MS)
    scene.ask(Sweep())
    for refused in (let_go(scene, late), scene.ask(Release(handle=gone.handle)), scene.complete(gone).outcomes[0]):
        assert isinstance(refused, LeaseLost)
        assert refused.reason is LostReason.EXPIRED
    assert "it was let go by its holder's own clock, last renewed" in str(scene.ask(Release(handle=gone.handle)))


def test_to_let_go_of_a_cancelled_task_or_within_an_outage_is_no_loss(scene):
    called_off, excused = scene.held("a"), scene.held("b")
    scene.ask(Cancel(task_id="a", reason="enough"))
    scene.backend.store._write.connection().execute("UPDATE leases SET excused = 1")
    assert let_go(scene, called_off) == Ended(state=State.CANCELLED, reason="enough")
    assert let_go(scene, excused) == Ended(state=State.READY)
    assert [scene.task(one).losses for one in "ab"] == [0, 0]


def test_a_restore_is_told_as_what_ended_the_leases_of_the_backup(scene):
    scene.held(ttl_ms=SECOND_MS)
    scene.pass_ms(SECOND_MS)
    store = scene.backend.store
    operation = Operation("restore", Sweep, int, lambda tx, _: close_lapsed(tx, by=LapsedBy.RESTORE), "")
    store.answer(operation, Sweep(), "default")
    assert scene.events()[-1].detail["by"] == "restore"
    assert scene.task().error == "the lease of A lapsed: the store went on from a backup, in which it was held"


def test_past_its_deadline_a_lapse_is_final(scene):
    scene.submit("t", ttl_ms=SECOND_MS, deadline_wall_ms=scene.clock.wall_ms() + 500)
    lose(scene)
    assert scene.task().reason == FailReason.DEADLINE
    assert scene.task().error == "its deadline passed while A held it"


def test_a_crowd_that_lapses_within_one_second_is_spread(scene):
    count = 2 * limits.LAPSES_PER_SECOND
    ids = [f"t{n}" for n in range(count)]
    scene.submit(*ids, ttl_ms=20_000)
    assert len(scene.claim(n=count)) == count
    scene.pass_ms(20_000)
    while scene.ask(Sweep()).more:
        pass
    delays = [scene.events(name)[-1].detail["delay_ms"] for name in ids]
    assert delays[: limits.LAPSES_PER_SECOND] == [0] * limits.LAPSES_PER_SECOND
    spread = delays[limits.LAPSES_PER_SECOND :]
    assert all(1 <= delay <= limits.LAPSE_SPREAD_MS_MAX for delay in spread)
    assert len(set(spread)) > len(spread) / 2


def test_ts_03_of_400_that_lapse_in_one_second_no_second_gets_more_than_15_percent_and_none_is_given_up(scene):
    ids = [f"t{n}" for n in range(400)]
    scene.submit(*ids, ttl_ms=60_000, max_losses=9, max_attempts=9)
    longest = []
    for round_ in (1, 2, 3):
        assert len(scene.claim(n=400)) == 400
        scene.pass_ms(60_000)
        while scene.ask(Sweep()).more:
            pass
        delays = [scene.events(name)[-1].detail["delay_ms"] for name in ids]
        seconds = Counter(delay // 1_000 for delay in delays)
        assert max(seconds.values()) <= 0.15 * 400, (round_, seconds)
        assert {scene.task(name).state for name in ids} == {State.READY}
        longest.append(min(delays))
        scene.pass_ms(20_000)
    assert longest == sorted(set(longest)), "each time they wait longer"


def test_the_spread_is_never_longer_than_a_ttl(scene):
    ids = [f"t{n}" for n in range(40)]
    scene.submit(*ids, ttl_ms=200)
    scene.claim(n=40)
    scene.pass_ms(200)
    while scene.ask(Sweep()).more:
        pass
    assert max(scene.events(name)[-1].detail["delay_ms"] for name in ids) <= 200


def test_a_renewed_lease_is_put_off_and_not_closed(scene):
    grant = scene.held(ttl_ms=SECOND_MS)
    scene.pass_ms(900)
    scene.renew(grant)
    before = scene.state()
    scene.pass_ms(100)
    assert scene.ask(Sweep()) == Swept(lapsed=0, overdue=0, unanswered=0, more=False)
    assert scene.state() == before
    scene.pass_ms(900)
    assert scene.ask(Sweep()).lapsed == 1


def test_one_sweep_closes_a_bounded_batch_and_says_whether_there_is_more(scene):
    count = limits.LAPSES_PER_BATCH + 1
    scene.submit(*[f"t{n}" for n in range(count)], ttl_ms=SECOND_MS)
    scene.claim(n=count)
    scene.pass_ms(SECOND_MS)
    assert scene.ask(Sweep()) == Swept(lapsed=limits.LAPSES_PER_BATCH, overdue=0, unanswered=0, more=True)
    assert scene.ask(Sweep()) == Swept(lapsed=1, overdue=0, unanswered=0, more=False)


def test_tasks_past_their_deadline_fail_in_batches_too(scene):
    count = limits.LAPSES_PER_BATCH + 1
    at = scene.clock.wall_ms() + SECOND_MS
    scene.submit(*[f"t{n}" for n in range(count)], deadline_wall_ms=at)
    scene.pass_ms(SECOND_MS)
    assert scene.ask(Sweep()) == Swept(lapsed=0, overdue=limits.LAPSES_PER_BATCH, unanswered=0, more=True)
    assert scene.ask(Sweep()) == Swept(lapsed=0, overdue=1, unanswered=0, more=False)
    assert scene.task("t0").reason == FailReason.DEADLINE


def test_a_cancelled_task_counts_no_loss_in_a_sweep(scene):
    scene.held(ttl_ms=SECOND_MS)
    scene.ask(Cancel(task_id="t", reason="enough"))
    scene.pass_ms(SECOND_MS)
    assert scene.ask(Sweep()).lapsed == 1
    event = scene.events()[-1]
    assert (event.kind, event.detail["reason"], event.detail["why"]) == (Cause.CANCELLED, "enough", "expired")
