"""How values read."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from relet.cli.colour import Paint
from relet.cli.words import clean, span, table, until, when

NOW = datetime(2027, 1, 31, 12, 0, 0, 123_456, UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0.0s"), (0, "0.0s"), (9.94, "9.9s"), (10, "10s"), (59.9, "59s"), (60, "1m00s"), (61, "1m01s"),
        (3_600, "1h00m"), (7_384, "2h03m"), (86_400, "1d00h"), (90_000, "1d01h"),
    ],
)  # fmt: skip
def test_a_span_has_two_units_at_most(seconds, words):
    assert span(seconds) == words


def test_a_time_is_shown_in_utc_whatever_its_zone():
    assert when(NOW.astimezone(timezone(timedelta(hours=2)))) == "2027-01-31T12:00:00.123Z"
    assert when(None) == "-"


def test_what_is_over_is_said_to_be():
    assert until(NOW + timedelta(seconds=42), NOW) == "42s"
    assert until(NOW - timedelta(seconds=42), NOW) == "42s ago"
    assert until(NOW, NOW) == "0.0s ago"


def test_a_text_is_printed_harmless_and_readable():
    assert clean("Grüße\x1b[0m\x9b\u202e") == "Grüße\\x1b[0m\\x9b\\u202e"


def test_columns_stand_under_their_heads_with_colour_too():
    paint = Paint(on=True)
    lines = table(["A", "B"], [["x" * 5, "1"], [paint("y", "red"), "22"]], paint).splitlines()
    assert lines[1] == "xxxxx  1"
    assert lines[2] == "\x1b[31my\x1b[0m      22"
