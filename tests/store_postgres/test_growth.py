"""Finished tasks cost nothing: no question about the others reads them, whichever plan the server takes."""

import msgspec
import psycopg
import pytest
from psycopg import sql

import relet
from relet.store.postgres.hot import LOOK_EVERY_MS, LOOKS_KEPT, Looks
from relet.store.postgres.texts import SQL, Dialect, statement
from relet.testing import Clock
from relet.testing.stores import open_store
from tests.store_postgres.crowd import fill, open_some, settle

pytestmark = pytest.mark.postgres
DONE, OPEN = 20_000, 200
NOW = 1_800_000_000_000
GIVEN = {
    "tenant": "default", "queue": "q1", "now_ms": NOW, "wall_ms": NOW, "after": 0, "kinds": None, "kind": None,
    "labels": None, "priority": 100, "seq": 0, "tokens": "[1, 2, 20005]", "ttl_ms": None,
    "late_share": 0.5, "most": None, "token": 20_005, "task_seq": 20_005, "id": "done-7", "older_ms": 1,
    "ids": '["done-7"]', "upto": 5_000, "share": None, "shared_from": 1, "key": "k", "request_id": "r",
    "call_id": "c", "before": NOW, "least": 5, "silent": "s", "second": 1, "name": "q1", "last_share": None,
    "full_us": None,
    "queues": '["q1", "q2"]',
}  # fmt: skip
ASKED = (
    "look_ahead", "lock_ready", "lock_ready_of", "lock_due", "lock_due_wall", "lock_overdue", "lock_to_check",
    "extend_leases", "lock_lease", "lock_holdings", "lock_leases", "lock_task", "task_by_seq", "lock_exclusive",
    "lock_requested", "lock_called", "find_task", "find_tasks", "find_tasks_leased", "find_tasks_ready",
    "find_tasks_set_aside", "count_ready_few", "count_ready", "count_delayed", "count_leased", "count_set_aside",
    "count_totals", "count_reconciling", "find_waiting", "find_next_lapse", "lock_turns", "lock_before_shares",
    "count_leased_of", "lock_prunable", "last_task", "find_lapsed", "find_quiet", "find_ready_kinds", "find_busy",
    "find_unknown", "find_stalled", "find_unanswered", "find_dead", "find_recent_claims", "find_task_events",
    "newest_event", "last_event", "last_reading", "extend_all_open", "forget_lapses", "forget_keys", "look_endings",
    "find_tombstones", "forget_requests", "find_stirred",
)  # fmt: skip
"""Asked while somebody waits; not what an operator asks once in a while."""
STATES = {"find_tasks_leased": "leased", "find_tasks_ready": "ready", "find_tasks_set_aside": "failed"}
LARGE = {"tasks", "leases", "events"}


@pytest.fixture(scope="module")
def grown(databases):
    with databases.emptied() as url:
        relet.connect(url).close()
        fill(url, DONE)
        with relet.connect(url) as db:
            open_some(db, OPEN)
        settle(url)
        yield url


def scanned(plan):
    """The tables that a plan reads from one end to the other."""
    found = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set()
    return found.union(*(scanned(part) for part in plan.get("Plans", ())))


def plan_of(connection, name, mode):
    known = statement(name, Dialect(steered=True))
    connection.execute(f"SET plan_cache_mode = {mode}")
    connection.execute(f"PREPARE asked AS {known.with_limit(100)}")
    try:
        given = GIVEN | {"state": STATES.get(name)}
        values = sql.SQL(", ").join(sql.Literal(given[each]) for each in known.names)
        call = sql.SQL("EXPLAIN (FORMAT JSON) EXECUTE asked") + (
            sql.SQL("({})").format(values) if known.names else sql.SQL("")
        )
        return connection.execute(call).fetchone()[0][0]["Plan"]
    finally:
        connection.execute("DEALLOCATE asked")


@pytest.mark.case("SC-01")
@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
def test_no_question_reads_all_tasks(grown, mode):
    with psycopg.connect(grown, autocommit=True) as connection:
        offenders = {
            name: found for name in ASKED if (found := scanned(plan_of(connection, name, mode)) & LARGE)
        }  # fmt: skip
    assert offenders == {}


def test_one_that_does_is_noticed(grown):
    with psycopg.connect(grown, autocommit=True) as connection:
        (plan,) = connection.execute("EXPLAIN (FORMAT JSON) SELECT count(result) FROM relet.tasks").fetchone()[0]
    assert scanned(plan["Plan"]) == {"tasks"}


def test_every_statement_that_is_named_here_is_there():
    assert set(ASKED) <= set(SQL)


def test_the_figures_are_right_beside_many_finished_ones(grown):
    with relet.connect(grown) as db:
        total = db.stats().total
        assert (total.done, total.failed, total.leased) == (DONE, OPEN // 20, OPEN // 10)
        assert total.ready + total.delayed + total.leased + total.failed == OPEN
        assert len(list(db.tasks(state="failed"))) == OPEN // 20
        assert db.verify().ok, msgspec.json.encode(db.verify().findings[:3])


def test_sweeps_clear_what_only_this_engine_adds(database, tmp_path):
    clock = Clock()
    with open_store(tmp_path, clock, url=database) as db, psycopg.connect(database, autocommit=True) as looker:

        def rows(table):
            return looker.execute(f"SELECT count(*) FROM relet.{table}").fetchone()[0]

        for n in range(3):
            db.submit("q", n, exclusive=f"key-{n}")
        leases = [db.claim("q", ttl="10s", request_id=f"r{n}") for n in range(3)]
        leases[0].complete(1)
        clock.advance("11s")
        db.sweep()
        assert (rows("keys") > 0, rows("lapses") > 0, rows("requests")) == (True, True, 3)
        held = db.claim("q", ttl="1h")
        for _ in range(80):
            clock.advance("1s")
            db.sweep()
        assert (rows("lapses"), rows("requests")) == (0, 0)
        assert looker.execute("SELECT name FROM relet.keys").fetchall() == [(db.task(held.task_id).exclusive,)]
        assert db.claim("q", ttl="1h").task_id != held.task_id, "a key that was forgotten is made anew"
        assert rows("keys") == 2


class Hand:
    """Of a clock that is set by hand."""

    ms = 0.0

    def elapsed_ms(self):
        return self.ms


def test_looks_that_are_no_longer_fresh_are_forgotten_however_many_queues_there_are():
    clock = Hand()
    looks = Looks(clock)
    for n in range(5 * LOOKS_KEPT):
        clock.ms += LOOK_EVERY_MS / 10
        looks.note("tenant", [f"q{n}"])
        assert looks.is_fresh("tenant", f"q{n}")
    assert looks.is_fresh("tenant", f"q{n - 9}")
    assert len(looks._at) <= LOOKS_KEPT
