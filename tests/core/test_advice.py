"""Which settings follow from what was measured, and when nothing does."""

import ast
import shlex

import pytest

from relet.core import limits
from relet.core.advice import Advice, LateHolder, LeaseSample, advise, rounded_up, said
from relet.core.model import End

TTL = 60_000


def sample(took_ms=45_000, ended=End.COMPLETED, **facts):
    facts = {
        "ttl_ms": TTL,
        "max_hold_ms": None,
        "took_over": False,
        "capped": False,
        "died": False,
        "let_go": False,
        **facts,
    }
    facts = {"late_beats": 0, **facts}
    return LeaseSample(ended=ended, took_ms=took_ms, least_left_ms=facts.pop("least_left_ms", None), **facts)


def late_beat(left_ms, n=1):
    return sample(late_beats=n, least_left_ms=left_ms)


def lapse(took_ms=TTL, **facts):
    return sample(took_ms, End.LAPSED, **facts)


def late_holder(late_ms, ttl_ms=TTL):
    return LateHolder(ttl_ms=ttl_ms, late_ms=late_ms)


MANY = [sample()] * limits.ADVICE_HOLD_LEAST
SOME = [sample()] * limits.ADVICE_LEASES_LEAST


def test_of_a_queue_without_leases_nothing_is_known():
    assert advise("q", [], []) == Advice(
        queue="q", leases=0, finished=0, given_back=0, lapsed=0, died=0, takeovers=0, late_renewals=0,
        least_left_ms=None, late_holders=0, frozen_holders=0, took=None, ttl_ms=None, max_hold_ms=None,
        advised_ttl_ms=None, advised_max_hold_ms=None,
        because=["0 of its leases are known, and 20 are needed: nothing is advised"], paste=[],
    )  # fmt: skip


def test_too_few_leases_are_told_with_their_figures_and_without_advice():
    advice = advise("q", SOME[1:], [])
    assert (advice.leases, advice.took.p50_ms, advice.ttl_ms) == (19, 45_000, TTL)
    assert (advice.advised_ttl_ms, advice.paste) == (None, [])


def test_figures_are_those_of_the_samples():
    took = [sample(ms, took_over=ms == 3) for ms in range(1, 99)]
    advice = advise("q", [*took, lapse(), sample(None, None), late_beat(5_000, n=3), late_beat(7_000)], [])
    assert (advice.leases, advice.finished, advice.lapsed, advice.takeovers) == (102, 100, 1, 1)
    assert (advice.late_renewals, advice.least_left_ms) == (4, 5_000)
    took = advice.took
    assert (took.p50_ms, took.p90_ms, took.p99_ms, took.longest_ms) == (50, 90, 45_000, 45_000)


# -- ttl -------------------------------------------------------------------------------------------------------------


def test_a_heartbeat_that_came_late_makes_the_ttl_three_times_its_delay():
    advice = advise("q", [*SOME, late_beat(5_000)], [])
    # 55 s of silence, of which 20 s were the interval.
    assert advice.advised_ttl_ms == 120_000
    assert "the longest delay of a heartbeat was 35s" in advice.because[0]
    assert advice.paste == [
        '@app.task(..., queue="q", ttl="2m")', 'db.queue("q", ttl="2m")', "relet submit q INPUT --ttl 2m",
    ]  # fmt: skip


def test_a_delay_that_the_ttl_bears_changes_nothing():
    advice = advise("q", [*SOME, late_beat(25_000)], [])
    assert (advice.advised_ttl_ms, advice.paste) == (TTL, [])
    assert advice.because[0] == "the longest delay of a heartbeat was 15s, which a ttl of 1m bears"


def test_a_holder_that_came_back_after_its_lease_was_late_and_not_dead():
    advice = advise("q", [*SOME, lapse()], [late_holder(10_000)])
    assert advice.advised_ttl_ms == 180_000
    assert (advice.late_holders, advice.frozen_holders) == (1, 0)
    assert "1 holder(s) came back" in advice.because[0]


def test_a_holder_that_was_stopped_for_long_says_nothing_about_the_ttl():
    advice = advise("q", [*SOME, lapse()], [late_holder(limits.ADVICE_FROZEN * TTL + 1)])
    assert (advice.late_holders, advice.frozen_holders) == (0, 1)
    assert advice.advised_ttl_ms == 30_000, "it counts as one that died"
    assert "they were stopped, not slow" in advice.because[-1]


def test_where_holders_die_and_heartbeats_come_in_time_the_ttl_may_be_shorter():
    advice = advise("q", [*SOME, lapse()], [])
    assert advice.advised_ttl_ms == 30_000
    assert "never came back" in advice.because[0]


def test_a_lease_that_reached_its_cap_is_no_death():
    assert advise("q", [*SOME, lapse(max_hold_ms=TTL, capped=True)], []).advised_ttl_ms == TTL


def test_a_death_that_was_proven_waited_for_no_ttl():
    advice = advise("q", [*SOME, lapse(5_000, died=True)], [])
    assert (advice.lapsed, advice.died, advice.advised_ttl_ms, advice.paste) == (1, 1, TTL, [])


def test_a_lease_that_its_holder_let_go_of_waited_for_no_ttl():
    advice = advise("q", [*SOME, lapse(5_000, let_go=True)], [])
    assert (advice.lapsed, advice.died, advice.advised_ttl_ms) == (1, 0, TTL)


def test_heartbeats_in_time_for_a_long_ttl_tell_nothing_about_a_short_one():
    slow = [sample(200_000, ttl_ms=10 * TTL)] * 30
    wide = [sample(400_000, ttl_ms=10 * TTL)] * 30
    assert advise("q", [*SOME, *slow, lapse()], []).advised_ttl_ms == 30_000, "they ended before a heartbeat was due"
    assert advise("q", [*SOME, *wide, lapse()], []).advised_ttl_ms == TTL


def test_leases_that_are_short_already_are_taken_over_no_sooner():
    assert advise("q", [*SOME, lapse(ttl_ms=5_000)], []).advised_ttl_ms == TTL


def test_late_heartbeats_name_the_other_way_out():
    assert 'heartbeat="process"' in advise("q", [*SOME, late_beat(5_000)], []).because[1]
    assert "process" not in str(advise("q", [*SOME, late_beat(25_000)], []).because)


def test_a_delay_that_no_ttl_bears_is_told_as_one():
    slow = [sample(ttl_ms=limits.TTL_MS_MAX)] * 30
    advice = advise("q", slow, [late_holder(4 * limits.HOUR_MS, limits.TTL_MS_MAX)])
    assert (advice.advised_ttl_ms, advice.paste) == (limits.TTL_MS_MAX, [])
    assert "not even 1d, the longest ttl, bears it three times over" in advice.because[0]


@pytest.mark.parametrize("ttl_ms", [10_000, 1_000])
def test_no_ttl_is_advised_that_a_busy_machine_would_lose(ttl_ms):
    samples = [sample(ttl_ms, ttl_ms=ttl_ms)] * limits.ADVICE_LEASES_LEAST
    assert advise("q", [*samples, lapse(ttl_ms=ttl_ms)], []).advised_ttl_ms == ttl_ms


def test_where_nothing_went_wrong_the_ttl_stays():
    advice = advise("q", SOME, [])
    assert (advice.advised_ttl_ms, advice.because[0]) == (TTL, "no renewal came late: the ttl stays")


def test_leases_that_end_before_a_heartbeat_tell_nothing_about_heartbeats():
    advice = advise("q", [sample(1_000)] * 50 + [lapse()], [])
    assert advice.advised_ttl_ms == TTL
    assert "1 lease(s) lasted long enough for a heartbeat: too few" in advice.because[0]


# -- max_hold --------------------------------------------------------------------------------------------------------


def test_a_cap_is_three_times_what_99_of_100_leases_took():
    advice = advise("q", MANY, [])
    assert advice.advised_max_hold_ms == 180_000
    assert advice.paste[-1] == "relet submit q INPUT --max-hold 3m"


def test_a_cap_leaves_room_for_two_ttls():
    assert advise("q", [sample(1_000)] * limits.ADVICE_HOLD_LEAST, []).advised_max_hold_ms == 2 * TTL


def test_a_cap_that_cut_leases_off_is_raised():
    cut = [sample(max_hold_ms=100_000)] * limits.ADVICE_HOLD_LEAST
    advice = advise("a queue", [*cut, lapse(100_000, max_hold_ms=100_000, capped=True)], [])
    assert advice.advised_max_hold_ms == 300_000
    assert "1 lease(s) were cut off by their max_hold" in advice.because[1]
    assert advice.paste[-1].startswith("relet submit 'a queue' INPUT ")
    short = [sample(max_hold_ms=40_000)] * limits.ADVICE_HOLD_LEAST
    assert advise("q", short, []).advised_max_hold_ms == 180_000


def test_a_cap_that_was_raised_since_it_cut_leases_off_is_not_raised_again():
    raised = [sample(max_hold_ms=300_000)] * limits.ADVICE_HOLD_LEAST
    advice = advise("q", [*raised, lapse(100_000, max_hold_ms=100_000, capped=True)], [])
    assert (advice.advised_max_hold_ms, advice.paste) == (300_000, [])


def test_a_cap_that_cut_nothing_off_stays():
    advice = advise("q", [sample(max_hold_ms=50_000)] * limits.ADVICE_HOLD_LEAST, [])
    assert (advice.advised_max_hold_ms, advice.paste) == (50_000, [])


def test_without_enough_finished_leases_no_cap_is_advised():
    advice = advise("q", SOME, [])
    assert advice.advised_max_hold_ms is None
    assert "20 finished lease(s) are known, and 100 are needed" in advice.because[1]
    assert advise("q", [lapse()] * 30, []).advised_max_hold_ms is None


@pytest.mark.parametrize("hours", [7, 30, 300, 24 * 365])
def test_no_cap_is_advised_that_would_have_cut_off_what_finished(hours):
    took_ms = hours * limits.HOUR_MS
    advice = advise("q", [sample(took_ms)] * limits.ADVICE_HOLD_LEAST, [])
    assert advice.advised_max_hold_ms >= 3 * took_ms
    capped = [sample(took_ms, max_hold_ms=2 * took_ms)] * limits.ADVICE_HOLD_LEAST
    raised = advise("q", [*capped, lapse(2 * took_ms, max_hold_ms=2 * took_ms, capped=True)], [])
    assert raised.advised_max_hold_ms >= 4 * took_ms


def test_the_one_that_took_longest_is_cut_off_no_more_than_the_others():
    long_ms = 2 * limits.HOUR_MS
    advice = advise("q", [*MANY, sample(long_ms)], [])
    assert (advice.took.p99_ms, advice.advised_max_hold_ms) == (45_000, 2 * long_ms)
    short = [sample(max_hold_ms=180_000)] * limits.ADVICE_HOLD_LEAST
    assert advise("q", [*short, sample(long_ms)], []).advised_max_hold_ms == 2 * long_ms


def test_where_leases_are_held_for_longer_now_no_cap_is_advised():
    advice = advise("a 'queue", [*MANY, sample(limits.HOUR_MS, None), sample(5_000, None)], [])
    assert (advice.advised_max_hold_ms, advice.paste) == (None, [])
    assert "1 lease(s) are held and renewed for longer now, up to 1h" in advice.because[1]
    assert advice.because[1].endswith("relet ls --state leased --queue 'a '\"'\"'queue'")


def test_a_lease_that_was_given_back_tells_nothing_about_the_work():
    advice = advise("q", [*SOME, *[sample(9_700, End.RELEASED)] * limits.ADVICE_HOLD_LEAST], [])
    assert (advice.finished, advice.given_back, advice.took.p50_ms) == (20, 100, 45_000)
    assert advice.advised_max_hold_ms is None


@pytest.mark.parametrize("queue", ["a queue", 'say "hi"', "back\\slash", "-q", "it's", "--max-hold"])
def test_what_is_advised_to_paste_parses_for_every_name_of_a_queue(queue):
    python, _, shell = advise(queue, MANY, []).paste
    (call,) = [one for one in ast.walk(ast.parse(python.removeprefix("@"))) if isinstance(one, ast.Call)]
    assert {one.arg: one.value.value for one in call.keywords} == {"queue": queue, "max_hold": "3m"}
    words = shlex.split(shell)
    if queue.startswith("-"):
        assert words == ["relet", "submit", "--max-hold", "3m", "--", queue, "INPUT"]
    else:
        assert words == ["relet", "submit", queue, "INPUT", "--max-hold", "3m"]


@pytest.mark.parametrize(
    ("ms", "step"),
    [
        (1, 1_000),
        (1_001, 2_000),
        (61_000, 90_000),
        (86_400_001, 2 * limits.DAY_MS),
        (limits.DAY_MS * 365.5, 366 * limits.DAY_MS),
    ],
)
def test_settings_are_rounded_up_to_what_people_set(ms, step):
    assert rounded_up(ms) == step


@pytest.mark.parametrize(
    ("ms", "text"),
    [(90_000, "90s"), (120_000, "2m"), (7_200_000, "2h"), (1_500, "1.5s"), (172_800_000, "2d"), (1_234_567, "1235s")],
)
def test_durations_are_said_as_settings_take_them(ms, text):
    assert said(ms) == text
