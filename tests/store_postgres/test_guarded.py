"""Statements in a user's own transaction: what ends it or reaches relet's tables is told from what only looks so."""

import psycopg
import pytest

import relet
from relet.store.postgres.lexer import pieces
from relet.store.postgres.out_of_reach import is_out_of_reach

HARMLESS = [
    "insert into mine values ('done; end of story')",
    "insert into mine values ('see https://relet.dev', '-- ; commit', '/*')",
    "insert into mine values ('it''s done; commit')",
    "insert into mine values (E'it\\'s done; commit')",
    "insert into mine values ('over'\n'; commit')",
    "insert into mine values ($$; commit$$, $a$; $$ relet.tasks; end$a$)",
    "do $$ declare x int; begin x := 1; end $$",
    "do $do$ begin execute $$insert into mine values (1)$$; end $do$",
    "create function f() returns int language sql begin atomic; select case when true then 1 end; select 1; end",
    "create or replace procedure p() language plpgsql as $$ begin commit; end $$",
    "select 1 as search_path; update mine set search_path = 'a'",
    'select 1 as "a;commit", "b"";end"',
    "update mine set n = 1 -- ; commit",
    "/* ; commit /* ; end */ relet.tasks */ select 1",
    "savepoint a; rollback to a; rollback work to savepoint a; release a",
    "select n from relets.tasks, mine_relet.x where a.end = 1",
    "select U&'\\0061; end', B'1', X'1F', n'; end'",
    "select $1; select a$b$c; select 1e5",
    "select case when n > 1 then 2 end from mine",
    "set local work_mem = '8MB'",
    "",
]
ENDS = [
    "select '--'; commit",
    "select '/*'; commit; select '*/'",
    "/* /* */ commit */ commit",
    "-- a\nCOMMIT",
    "select E'\\'; -- '; commit",
    "select 'a\\'; commit; select ''",
    'select 1 as ";--"; end',
    "select $a$ $b$ $a$; abort",
    "select $$a$$; rollback",
    "end work",
    "rollback work",
    "abort",
    "; ;commit",
    "create function f() returns int language sql begin atomic; select 1; end; commit",
]
REACHES = [
    "begin", "start transaction", "prepare transaction 'x'",
    "select * from relet.tasks", "select * from RELET . tasks", 'delete from "relet"."tasks"',
    "select * from work.relet.tasks",
    "copy relet.tasks from stdin", "drop schema if exists relet cascade", "lock table only relet.tasks",
    "do $$ begin delete from relet.tasks; end $$",
    "do 'begin delete from relet.tasks; end'",
    "create function f() returns int language sql as $$ delete from relet.tasks $$",
    "set search_path = relet", "SET LOCAL search_path TO relet", "set session schema 'relet'", "reset search_path",
    "reset all", "select set_config('search_path', 'relet', true)", 'set "search_path" = relet',
    "do $$ begin set local search_path = relet; end $$",
]  # fmt: skip


@pytest.mark.parametrize("statement", HARMLESS)
def test_what_only_looks_like_it_is_allowed(statement):
    assert not is_out_of_reach(statement, "relet")


@pytest.mark.parametrize("statement", [*ENDS, *REACHES])
def test_what_ends_it_or_reaches_relets_tables_is_not(statement):
    assert is_out_of_reach(statement, "relet")


def test_where_every_literal_has_backslashes_they_are_seen_as_such():
    statement = r"select 'it\'s; commit'; select 1"
    assert is_out_of_reach(statement.replace("1", "'; commit --'"), "relet")
    assert not is_out_of_reach(statement, "relet", escapes=True)


@pytest.mark.parametrize("statement", ["select 'a", 'select "a', "select $$a", "select /* a", "select E'\\", "é€$x"])
def test_a_statement_that_is_not_whole_is_read_to_its_end(statement):
    assert list(pieces(statement))


@pytest.mark.postgres
def test_a_server_reads_statements_in_the_same_way(database):
    """What is allowed here leaves its transaction open, and what is refused as an end ends it."""
    with relet.connect(database), psycopg.connect(database, autocommit=True) as mine:
        mine.execute("SET standard_conforming_strings = on; SET check_function_bodies = off")
        for statement in [*HARMLESS, *ENDS]:
            mine.execute("BEGIN")
            mine.pgconn.exec_(b"SAVEPOINT mine")
            mine.pgconn.exec_(b"SAVEPOINT a")
            mine.pgconn.exec_(statement.encode())
            gone = mine.pgconn.exec_(b"ROLLBACK TO mine")
            assert (gone.error_message != b"") == (statement in ENDS), (statement, gone.error_message)
            mine.pgconn.exec_(b"ROLLBACK")
