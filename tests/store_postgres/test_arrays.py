"""An array that goes to the server as one text is read there as what it was, whatever stands in it."""

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relet.store.postgres.texts import array_of
from tests.postgres import PostgresServer

pytestmark = pytest.mark.postgres
AWKWARD = ['"', "\\", "\\n", '\\"', "{a,b}", "NULL", "null", "", " ", "\n", "\t\\", "\x01", "\x7f", "\u2028", "é😀"]
TEXTS = st.one_of(
    st.sampled_from(AWKWARD), st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
)


@pytest.fixture(scope="module")
def connection():
    with PostgresServer() as server, psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        yield connection


def read(connection, values, kind):
    return connection.execute(f"SELECT %s::{kind}[]", [array_of(values)]).fetchone()[0]


@given(texts=st.lists(st.one_of(st.none(), TEXTS)))
def test_texts_arrive_as_they_were(connection, texts):
    assert read(connection, texts, "text") == texts


def test_texts_with_and_without_control_characters_arrive_together(connection):
    assert read(connection, AWKWARD, "text") == AWKWARD
    for text in AWKWARD:
        assert read(connection, [text], "text") == [text]


@given(numbers=st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))))
def test_numbers_arrive_as_they_were(connection, numbers):
    assert read(connection, numbers, "bigint") == numbers


def test_truths_arrive_as_they_were(connection):
    assert read(connection, [True, None, False], "boolean") == [True, None, False]
