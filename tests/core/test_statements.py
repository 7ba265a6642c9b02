"""A text of named statements is exact: each name once, none too many, none missing."""

import pytest

from relet.core.statements import named

TEXT = """-- name: first
-- by primary key
SELECT 1
FROM a;

-- name: second
SELECT 2
"""


def test_statements_are_found_by_name_and_in_one_line():
    assert named(TEXT, ["second", "first"], "a.sql") == {"first": "SELECT 1 FROM a", "second": "SELECT 2"}


@pytest.mark.parametrize(
    ("text", "wanted", "odd"),
    [
        (TEXT, ["first"], "second"),
        (TEXT, ["first", "second", "third"], "third"),
        (TEXT + TEXT, ["first", "second"], "first"),
    ],
)
def test_a_missing_an_extra_and_a_repeated_name_are_refused(text, wanted, odd):
    with pytest.raises(LookupError, match=rf"a\.sql: .*{odd}"):
        named(text, wanted, "a.sql")
