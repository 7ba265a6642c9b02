"""Durations, times and numbers at the border: what is taken, as what, and what is refused in which words."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import count

import pytest

from relet.core import border, limits
from relet.core.errors import Invalid

TAKEN = [
    (0, 0),
    (90, 90_000),
    (1.5, 1_500),
    (0.0004, 0),
    (timedelta(minutes=2, milliseconds=5), 120_005),
    ("90", 90_000),
    (" 1.5 ", 1_500),
    ("250ms", 250),
    ("90s", 90_000),
    ("2h", 7_200_000),
    ("1m30s", 90_000),
    (" 1 h 30 m ", 5_400_000),
    ("1.5d", 129_600_000),
    ("1d1h1m1s1ms", 90_061_001),
]

REFUSED = [
    (float("nan"), "not a finite number"),
    (float("inf"), "not a finite number"),
    (float("-inf"), "not a finite number"),
    (True, "not a duration"),
    (None, "not a duration"),
    (b"90s", "not a duration"),
    ("", "not a duration"),
    ("soon", "not a duration"),
    ("90s and a bit", "not a duration"),
    ("-5s", "not a duration"),
    ("1m30", "not a duration"),
    ([90], "not a duration"),
    (-1, "outside 0ms to 3650d"),
    (timedelta(seconds=-1), "outside 0ms to 3650d"),
    (timedelta.max, "outside 0ms to 3650d"),
    (1e308, "outside 0ms to 3650d"),
    ("9" * 400 + "s", "outside 0ms to 3650d"),
    ("9" * 400, "outside 0ms to 3650d"),
    (10**5_000, "a int that cannot be shown is outside"),
]


@pytest.mark.parametrize(("given", "ms"), TAKEN, ids=repr)
def test_a_duration_is_seconds_a_timedelta_or_text(given, ms):
    assert border.duration_ms("ttl", given) == ms


@pytest.mark.parametrize(("given", "problem"), REFUSED, ids=count())
def test_what_is_no_duration_is_refused_by_the_name_of_its_field(given, problem):
    with pytest.raises(Invalid, match=f"^ttl: .*{problem}") as refused:
        border.duration_ms("ttl", given)
    assert refused.value.detail["field"] == "ttl"
    assert refused.value.code == "RELET-INVALID"


@pytest.mark.parametrize("ms", [100, 86_400_000])
def test_a_duration_may_be_its_least_and_its_most(ms):
    assert border.duration_ms("ttl", f"{ms}ms", least=limits.TTL_MS_MIN, most=limits.TTL_MS_MAX) == ms


@pytest.mark.parametrize("ms", [99, 86_400_001])
def test_one_millisecond_outside_is_refused_with_both_bounds_in_words(ms):
    with pytest.raises(Invalid, match="outside 100ms to 1d; give a duration between them"):
        border.duration_ms("ttl", f"{ms}ms", least=limits.TTL_MS_MIN, most=limits.TTL_MS_MAX)


def test_a_duration_that_was_not_given_stays_none():
    assert border.maybe_duration_ms("ttl", None) is None
    assert border.maybe_duration_ms("ttl", "1s", least=1) == 1_000


def test_a_time_is_an_aware_datetime_in_any_zone():
    there = timezone(timedelta(hours=5, minutes=30))
    assert border.wall_ms("at", datetime(2027, 1, 15, 8, 0, 0, 1_000, tzinfo=UTC)) == 1_800_000_000_001
    assert border.wall_ms("at", datetime(2027, 1, 15, 13, 30, tzinfo=there)) == 1_800_000_000_000


@pytest.mark.parametrize("given", [datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)])
def test_a_time_may_be_any_between_1970_and_9999(given):
    assert 0 <= border.wall_ms("at", given) <= limits.WALL_MS_MAX


@pytest.mark.case("EC-12")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (datetime(1969, 12, 31, tzinfo=UTC), "is outside the years 1970 to 9999"),
        (datetime.min.replace(tzinfo=UTC), "is outside the years 1970 to 9999"),
        (datetime(2027, 1, 15), "2027-01-15T00:00:00 is naive; add a zone"),  # noqa: DTZ001 - that is the point
        ("2027-01-15", "is not a datetime"),
        (1_800_000_000, "is not a datetime"),
    ],
)
def test_a_time_whose_zone_would_be_a_guess_is_refused(given, problem):
    with pytest.raises(Invalid, match=f"^at: .*{problem}"):
        border.wall_ms("at", given)


@pytest.mark.parametrize("given", [1, 7, 10])
def test_a_whole_number_is_taken_between_its_bounds(given):
    assert border.whole("n", given, least=1, most=10) == given


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (0, "0 is outside 1 to 10"),
        (11, "11 is outside 1 to 10"),
        (10**5_000, "cannot be shown is outside 1 to 10"),
        (True, "True is not a whole number"),
        (1.0, "1.0 is not a whole number"),
        ("7", "'7' is not a whole number"),
    ],
    ids=count(),
)
def test_a_number_outside_its_bounds_or_not_whole_is_refused(given, problem):
    with pytest.raises(Invalid, match=f"^n: .*{problem}"):
        border.whole("n", given, least=1, most=10)


def test_a_flag_is_a_bool_and_nothing_that_looks_like_one():
    assert border.flag("retry", True) is True
    assert border.flag("retry", False) is False
    for given in (1, 0, "yes", None):
        with pytest.raises(Invalid, match=r"^retry: .* is not True or False"):
            border.flag("retry", given)
