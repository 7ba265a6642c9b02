"""Both ends of a copy have the same columns, and no table or column of a store is forgotten."""

import re

import apsw
import psycopg
import pytest

import relet
from relet.store.copying import NUMBERED, TABLES
from relet.store.migrate import SCHEMA, migrations
from relet.store.postgres.copy_in import COPY_SQL as IN
from relet.store.sqlite.copy_out import COPY_SQL as OUT

OF_THE_FILE = {"meta", "places", "holders"}
"""What says where it is, what the next claim makes anew, and who holds locks beside it."""
OF_THE_DATABASE = {"meta", "run", "keys", "requests", "lapses", "places"}
CHAIN = {("events", "before")}
"""Kept in the file for want of an index."""
COLUMNS = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'relet'"


def asked(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def columns_in(table):
    return [name.strip() for name in re.search(r"\((.*)\)", IN[table], re.DOTALL)[1].split(",")]


def test_each_table_is_read_as_it_is_written():
    connection = apsw.Connection(":memory:")
    for step in migrations("relet.store.sqlite", SCHEMA):
        connection.execute(step.text)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {name for name in tables if not name.startswith("sqlite_")} == set(TABLES) | OF_THE_FILE
    for table in TABLES:
        given = {"ahead_ms": 0} if ":ahead_ms" in OUT[table] else None
        described = read_columns(connection, OUT[table], given)
        wanted = columns_in(table)
        assert len(described) == len(wanted), table
        for said, name in zip(described, wanted, strict=True):
            # Of an expression the text is told: the column's name with something added to it, or a constant.
            assert said.split(" ")[0] in {name, "rowid", "0"}, f"{table}: {said} is copied into {name}"
        left = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")} - set(wanted)
        assert {(table, name) for name in left} <= CHAIN


def read_columns(connection, text, given):
    """The names that the engine gives to what a statement answers."""
    cursor = connection.cursor()
    found = []
    cursor.exec_trace = lambda cursor, *_: found.append(cursor.get_description()) or True
    cursor.execute(text, given)
    return [name for name, *_ in found[0]]


@pytest.mark.postgres
def test_no_table_and_no_column_of_a_database_is_forgotten(database):
    relet.connect(database).close()
    columns = {}
    for table, column in asked(database, COLUMNS):
        columns.setdefault(table, set()).add(column)
    assert set(columns) == set(TABLES) | OF_THE_DATABASE
    assert {table: set(columns_in(table)) for table in TABLES} == {table: columns[table] for table in TABLES}
    identities = {table for (table,) in asked(database, (
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'relet' AND is_identity = 'YES'"
    ))}  # fmt: skip
    assert identities == {*NUMBERED, "lapses"}
