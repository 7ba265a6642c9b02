"""What it costs to look at a store in which many tasks have finished: no more than in one where few have."""

import apsw
import pytest

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


def finish_many(folder):
    """As if so many tasks had been submitted and done, over a connection of the test's own."""
    connection = apsw.Connection(str(path_of(folder)))
    connection.set_busy_timeout(5_000)
    known = [row[1] for row in connection.execute("PRAGMA table_info(tasks)")]
    columns = [name for name in known if name not in ("seq", "id", "state")]
    connection.execute(
        f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {FINISHED}) "
        f"INSERT INTO tasks (id, state, {', '.join(columns)}) "
        f"SELECT 'done-' || n.i, 'done', {', '.join(columns)} FROM n JOIN tasks t ON t.id = 'ready'"
    )
    connection.execute("UPDATE totals SET submitted = submitted + ?", (FINISHED,))
    connection.close()


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
    "the held ones": lambda db: db.tasks(state="leased"),
    "the dead letters": lambda db: db.tasks(state="failed"),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_look_does_not_read_what_has_finished(busy, tmp_path, look):
    look(busy)  # prepares the statements
    few = steps_of(busy, lambda: look(busy))
    finish_many(tmp_path)
    assert busy.stats().total.done == FINISHED
    assert abs(steps_of(busy, lambda: look(busy)) - few) <= STEPS_PER_LOOK * 5
    assert few < FINISHED


def test_a_look_that_reads_all_is_seen(busy, tmp_path):
    def everything():
        lane(busy, "read").connection().execute("SELECT count(*) FROM tasks NOT INDEXED WHERE queue = 'q'").fetchall()

    few = steps_of(busy, everything)
    finish_many(tmp_path)
    assert steps_of(busy, everything) - few > FINISHED
