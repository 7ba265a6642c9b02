"""What it costs to look at a store in which many tasks have finished: no more than in one where few have."""

from contextlib import closing, contextmanager
from datetime import UTC, datetime

import apsw
import pytest

from relet.core.errors import LeaseLost
from relet.core.model import GivenBack
from relet.core.rules.advise import Advise
from relet.core.rules.condition import AskCondition
from tests.store.inside import lane, path_of

FINISHED = 3_000
STEPS_PER_LOOK = 10


@pytest.fixture
def busy(db):
    """A store in which a task of every kind stands, and no task has finished."""
    db.submit("q", 0, id="ready")
    db.submit("q", 0, id="later", delay=60)
    db.submit("q", 0, id="held")
    assert db.claim(task_id="held")
    db.cancel(db.submit("q", 0, id="off").id)
    return db


@contextmanager
def by_hand(folder):
    """A connection of the test's own, which writes past the rules."""
    connection = apsw.Connection(str(path_of(folder)))
    connection.set_busy_timeout(5_000)
    with closing(connection):
        yield connection


def columns_but(connection, table, *others):
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    return ", ".join(name for name in names if name not in others)


NUMBERS = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {FINISHED})"


def finish_many(folder):
    """As if so many tasks had been submitted and done."""
    with by_hand(folder) as connection:
        columns = columns_but(connection, "tasks", "seq", "id", "state")
        connection.execute(
            f"{NUMBERS} INSERT INTO tasks (id, state, {columns}) "
            f"SELECT 'done-' || n.i, 'done', {columns} FROM n JOIN tasks t ON t.id = 'ready'"
        )
        connection.execute("UPDATE totals SET submitted = submitted + ?", (FINISHED,))


def grant_many(folder):
    """As if the task that is held had been granted and given back so many times."""
    with by_hand(folder) as connection:
        columns = columns_but(connection, "leases", "token", "ended", "ended_ms")
        connection.execute(
            f"{NUMBERS} INSERT INTO leases (token, ended, ended_ms, {columns}) "
            f"SELECT token + n.i, 'released', claimed_ms + 1, {columns} FROM n, (SELECT * FROM leases LIMIT 1)"
        )


def steps_of(db, look):
    """How many steps of SQLite's machine a look takes, to the nearest few."""
    steps = [0]

    def count():
        steps[0] += STEPS_PER_LOOK
        return False  # go on

    connection = lane(db, "read").connection()
    connection.set_progress_handler(count, STEPS_PER_LOOK)
    try:
        look()
    finally:
        connection.set_progress_handler(None)
    return steps[0]


LOOKS = {
    "the figures": lambda db: db.stats(),
    "the first page of tasks": lambda db: db.tasks(limit=4),
    "the ready ones": lambda db: db.tasks(state="ready"),
    "the held ones": lambda db: db.tasks(state="leased"),
    "the dead letters": lambda db: db.tasks(state="failed"),
}


@pytest.mark.case("SC-01")
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_look_does_not_read_what_has_finished(busy, tmp_path, look):
    look(busy)  # prepares the statements
    few = steps_of(busy, lambda: look(busy))
    finish_many(tmp_path)
    assert busy.stats().total.done == FINISHED
    assert abs(steps_of(busy, lambda: look(busy)) - few) <= STEPS_PER_LOOK * 5
    assert few < FINISHED


@pytest.mark.parametrize("look", [AskCondition, Advise])
def test_what_leases_tell_is_told_by_the_newest_of_them(busy, tmp_path, monkeypatch, look):
    monkeypatch.setattr("relet.core.limits.DOCTOR_LEASES", 50)
    monkeypatch.setattr("relet.core.limits.ADVICE_LEASES", 50)
    grant_many(tmp_path)
    few = steps_of(busy, lambda: busy.backend.call(look()))
    busy.submit("q", 0, id="next")
    busy.claim(task_id="next").release()
    grant_many_more(tmp_path)
    assert steps_of(busy, lambda: busy.backend.call(look())) - few < FINISHED / 10


def grant_many_more(folder):
    """Twice as many as there are."""
    connection = apsw.Connection(str(path_of(folder)))
    connection.set_busy_timeout(5_000)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(leases)") if row[1] != "token"]
    connection.execute(
        f"INSERT INTO leases (token, {', '.join(columns)}) "
        f"SELECT token + (SELECT max(token) FROM leases), {', '.join(columns)} FROM leases WHERE ended IS NOT NULL"
    )
    connection.close()


@pytest.mark.parametrize(("why", "late"), [(GivenBack.HOLDER_EXPIRED, 1), (GivenBack.MAX_SILENCE, 0)])
def test_a_lease_that_its_holder_let_go_of_tells_of_a_late_heartbeat_unless_its_work_stood_still(
    db, clock, why, late
):
    db.submit("q", 0)
    lease = db.claim("q", ttl="60s")
    clock.advance("58s")
    lease.give_back(why)
    clock.advance("60s")
    (refused,) = db.complete_many([(lease, None)])
    assert isinstance(refused, LeaseLost)
    (advice,) = db.advise()
    assert (advice.lapsed, advice.died, advice.given_back, advice.late_renewals) == (1, 0, 0, late)
    assert advice.late_holders == late


def test_ready_tasks_are_listed_alike_whether_few_or_many(busy, tmp_path, monkeypatch):
    busy.submit("q", 0, id="far", at=datetime(2099, 1, 1, tzinfo=UTC), labels={"a": "b"})
    finish_many(tmp_path)
    few = busy.tasks(state="ready")
    assert [task.id for task in few] == ["ready", "later", "far"]
    pages = [busy.tasks(state="ready", limit=2, after="ready"), busy.tasks(state="ready", labels={"a": "b"})]
    monkeypatch.setattr("relet.core.limits.READY_SORTED", 2)
    assert busy.tasks(state="ready") == few
    assert [
        busy.tasks(state="ready", limit=2, after="ready"), busy.tasks(state="ready", labels={"a": "b"}),
    ] == pages  # fmt: skip


def test_a_look_that_reads_all_is_seen(busy, tmp_path):
    def everything():
        lane(busy, "read").connection().execute("SELECT count(*) FROM tasks NOT INDEXED WHERE queue = 'q'").fetchall()

    few = steps_of(busy, everything)
    finish_many(tmp_path)
    assert steps_of(busy, everything) - few > FINISHED
