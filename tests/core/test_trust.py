"""What a holder may believe, as pure data: no clock runs here, every instant is handed in."""

import pytest

from relet.core import limits
from relet.core.errors import Invalid
from relet.core.model import LostReason
from relet.core.trust import Status, Trust, interval_ms, margin_ms

HELD, DOUBTFUL, LOST = Status.HELD, Status.DOUBTFUL, Status.LOST


def trust(sent_ms=1_000, left_ms=60_000, ttl_ms=60_000, **more):
    return Trust(sent_ms=sent_ms, left_ms=left_ms, ttl_ms=ttl_ms, **more)


@pytest.mark.parametrize(
    ("ttl_ms", "margin"),
    [
        (100, 25),  # a quarter of the ttl, where that is less than a quarter of a second
        (500, 125),
        (1_000, 250),
        (5_000, 250),
        (5_001, 250.05),  # five per cent, from five seconds on
        (60_000, 3_000),
        (86_400_000, 4_320_000),
    ],
)
def test_the_margin_is_five_per_cent_or_a_quarter_second_but_a_quarter_of_the_ttl_at_most(ttl_ms, margin):
    assert margin_ms(ttl_ms) == pytest.approx(margin)
    assert margin_ms(ttl_ms, skew_ms=40) == pytest.approx(margin + 40)


@pytest.mark.parametrize(("ttl_ms", "every_ms"), [(100, 33), (60_000, 20_000), (1, 1)])
def test_a_heartbeat_is_due_every_third_of_the_ttl(ttl_ms, every_ms):
    assert interval_ms(ttl_ms) == every_ms


def test_an_interval_may_be_asked_for_up_to_half_the_ttl():
    assert interval_ms(60_000, 1) == 1
    assert interval_ms(60_000, 30_000) == 30_000
    assert interval_ms(101, 50) == 50


@pytest.mark.parametrize("asked_ms", [30_001, 60_000, 0, -5])
def test_an_interval_over_half_the_ttl_is_refused_with_the_way_out(asked_ms):
    with pytest.raises(Invalid, match=r"one lost beat would lose the lease. Give at most half the ttl") as refused:
        trust(every_ms=asked_ms)
    assert refused.value.detail == {"field": "interval"}


def test_the_deadline_counts_from_before_the_request_was_sent():
    held = trust(sent_ms=1_000, left_ms=60_000)
    assert held.until_ms == 61_000
    assert held.deadline_ms == 58_000
    assert held.trusted_ms(21_000) == 37_000


def test_the_skew_of_the_engine_is_taken_off_too():
    assert trust(skew_ms=500).deadline_ms == 57_500


def test_at_the_deadline_itself_the_lease_is_lost():
    assert trust().status(57_999.999) is HELD
    assert trust().status(58_000) is LOST


def test_an_answer_moves_the_deadline_and_clears_doubt():
    held = trust()
    held.miss(20_000)
    held.confirm(sent_ms=21_000, left_ms=60_000)
    assert held.status(22_000) is HELD
    assert (held.deadline_ms, held.renewed_ms, held.renew_at_ms()) == (78_000, 21_000, 41_000)


def test_of_several_answers_the_one_that_reaches_furthest_stands():
    held = trust()
    held.confirm(sent_ms=21_000, left_ms=60_000)
    held.confirm(sent_ms=11_000, left_ms=60_000)  # overtaken on its way
    assert (held.until_ms, held.deadline_ms, held.renewed_ms) == (81_000, 78_000, 21_000)


def test_no_answer_is_not_a_renewal_and_the_next_try_comes_soon():
    held = trust()
    held.miss(21_000)
    assert held.status(21_000) is DOUBTFUL
    assert held.deadline_ms == 58_000
    assert held.renew_at_ms() == 26_000
    assert held.trusted_ms(21_000) == 37_000


def test_misses_up_to_the_deadline_end_in_a_loss():
    held = trust()
    for now_ms in range(21_000, 58_000, 5_000):
        held.miss(now_ms)
        assert held.status(now_ms) is DOUBTFUL
    assert held.status(58_000) is LOST
    assert held.lost is LostReason.EXPIRED


def test_lost_is_final_whatever_the_store_answers_later():
    held = trust()
    assert held.status(58_000) is LOST
    held.confirm(sent_ms=57_999, left_ms=60_000)
    assert held.deadline_ms == 58_000
    assert held.status(1_000) is LOST, "no clock that goes back revives it either"
    assert held.trusted_ms(1_000) == 0
    assert held.renew_at_ms() is None
    assert held.wake_at_ms() is None


def test_the_first_reason_of_a_loss_stands():
    held = trust()
    held.lose(LostReason.SUPERSEDED)
    held.lose(LostReason.EXPIRED)
    assert held.status(2_000) is LOST
    assert held.lost is LostReason.SUPERSEDED
    assert held.status(99_000) is LOST
    assert held.lost is LostReason.SUPERSEDED


@pytest.mark.parametrize("jump_ms", [1_001, -1_001, 3_600_000])
def test_a_jump_between_the_clocks_raises_doubt_and_a_beat_at_once(jump_ms):
    held = trust()
    held.observe(2_000, 1_800_000_002_000)
    held.observe(3_000, 1_800_000_003_000 + jump_ms)
    assert held.status(3_000) is DOUBTFUL
    assert held.renew_at_ms() == 3_000
    held.confirm(sent_ms=3_000, left_ms=60_000)
    held.observe(4_000, 1_800_000_004_000 + jump_ms)
    assert held.status(4_000) is HELD, "one jump is doubted once"


def test_a_suspended_machine_raises_doubt_although_its_clocks_agree():
    held = trust()
    held.observe(2_000, 1_800_000_002_000, 70)
    held.observe(9_000, 1_800_000_009_000, 70 + 1_001)
    assert held.status(9_000) is DOUBTFUL
    assert held.renew_at_ms() == 9_000
    held.confirm(sent_ms=9_000, left_ms=60_000)
    held.observe(9_100, 1_800_000_009_100, 70 + 1_001)
    assert held.status(9_100) is HELD, "one pause is doubted once"


@pytest.mark.parametrize("drift_ms", [1_000, -1_000, 0])
def test_clocks_up_to_a_second_apart_raise_no_doubt(drift_ms):
    held = trust()
    held.observe(2_000, 1_800_000_002_000)
    held.observe(3_000, 1_800_000_003_000 + drift_ms)
    assert held.status(3_000) is HELD


def test_a_capped_lease_is_held_to_its_deadline_and_not_renewed_any_more():
    held = trust()
    held.miss(21_000)
    held.cap()
    assert held.status(21_000) is HELD
    assert held.renew_at_ms() is None
    assert held.wake_at_ms() == 58_000
    assert held.status(58_000) is LOST
    assert held.lost is LostReason.CAPPED


def test_an_answer_that_was_cut_short_caps_the_lease():
    held = trust()
    held.confirm(sent_ms=21_000, left_ms=50_000, capped=True)
    assert held.capped
    assert held.deadline_ms == 68_000
    held.confirm(sent_ms=22_000, left_ms=49_000)
    assert held.capped, "once capped, for good"


def test_the_keeper_wakes_for_the_beat_or_for_the_deadline_whichever_comes_first():
    held = trust()
    assert held.renew_at_ms() == held.wake_at_ms() == 21_000
    held.miss(55_000)
    assert held.renew_at_ms() == 60_000
    assert held.wake_at_ms() == 58_000


def test_the_least_ttl_leaves_room_for_beats():
    held = trust(sent_ms=0, left_ms=100, ttl_ms=limits.TTL_MS_MIN)
    assert (held.interval_ms, held.deadline_ms) == (33, 75)
    assert held.status(74) is HELD
    held.miss(33)
    assert held.renew_at_ms() == pytest.approx(33 + 100 / 12)
    assert held.status(75) is LOST


def test_a_lease_that_came_back_with_little_time_left_is_trusted_for_less():
    held = trust(left_ms=2_000)
    assert held.status(1_000) is LOST, "less is left than the margin"
