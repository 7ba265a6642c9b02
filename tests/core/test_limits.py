"""Limits of queues at the border: what is taken, and what is refused with the limit and the way out."""

import pytest

from relet.core import border
from relet.core.errors import Invalid


@pytest.mark.parametrize(("value", "taken"), [(None, None), (1, 1), (50, 50), ("none", 0)])
def test_a_limit_is_a_whole_number_or_lifted_by_a_word(value, taken):
    assert border.maybe_limit("concurrency", value, most=50) == taken


@pytest.mark.parametrize("value", [0, -1, 51, 1.0, True, False, "8", "None", ""])
def test_what_is_no_limit_is_refused_with_the_way_to_lift_it_and_the_way_to_stop_a_queue(value):
    with pytest.raises(
        Invalid, match=r'concurrency: .* is no limit; give a whole number of 1 to 50, or "none"'
    ) as no:
        border.maybe_limit("concurrency", value, most=50)
    assert no.value.detail["field"] == "concurrency"
    assert no.value.message.endswith("→ relet pause QUEUE")


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        (None, None),
        ("none", (0, 0)),
        ("100/m", (100, 60_000)),
        ("5/s", (5, 1_000)),
        (" 10 / 30 s ", (10, 30_000)),
        ("1/1d", (1, 86_400_000)),
        ("1000000/1ms", (1_000_000, 1)),
    ],
)
def test_a_rate_is_a_count_in_a_time(value, taken):
    assert border.maybe_rate("rate", value) == taken


@pytest.mark.parametrize(
    "value",
    [0, 1.5, True, "", "5", "/s", "5/", "0/s", "-1/s", "5/0s", "5/25h", "1000001/s", "5/w", "5 per m", "\u0665/s"],
)
def test_what_is_no_rate_is_refused_with_examples(value):
    with pytest.raises(Invalid, match=r'rate: .* is no rate; give 1 to 1000000 in up to 1d, such as "100/m"') as no:
        border.maybe_rate("rate", value)
    assert no.value.detail["field"] == "rate"
