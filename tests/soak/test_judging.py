"""What the soak looks for is found when it is there."""

from types import SimpleNamespace

import pytest

from relet.testing.clock import Clock
from relet.testing.stores import open_store
from tests.soak import judging
from tests.soak.ledger import Ledger


@pytest.fixture
def course(tmp_path):
    """A soak that has ended well: two tasks, one of which charges, the first taken over once."""
    with open_store(tmp_path, Clock()) as db:
        ledger = Ledger(tmp_path / "ledger.db")
        course = SimpleNamespace(db=db, ledger=ledger, submitted={"a": "steps", "b": "effect"}, faults=[])
        for task_id in course.submitted:
            db.submit("soak", id=task_id)
        older = db.claim(task_id="a", ttl=1)
        ledger.write("a", older.token)
        db.clock.advance(1)
        for task_id in course.submitted:
            lease = db.claim(task_id=task_id)
            ledger.write(task_id, lease.token)
            lease.complete(lease.token)
        ledger.charge("b", "key of b")
        yield course


def found(course):
    return [*judging.by_the_way(course, 64.0), *judging.in_the_end(course)]


def test_where_all_is_well_nothing_is_found(course):
    assert found(course) == []
    course.ledger.charge("b", "key of b")
    assert found(course) == [], "a key may be called twice: it charges once"


def planted(course, sql):
    course.ledger._connection().execute(sql).fetchall()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("DELETE FROM writes WHERE task = 'b'", "b was completed under token"),
        ("INSERT INTO writes (task, token) SELECT task, min(token) FROM writes WHERE task = 'a'", "went back"),
        ("INSERT INTO writes (task, token) SELECT task, max(token) FROM writes WHERE task = 'b'", "repeats itself"),
        ("INSERT INTO charges VALUES ('another', 'b', 1)", "the ledger has 2 charges"),
        ("DELETE FROM charges", "the ledger has 0 charges"),
    ],
)
def test_a_write_too_few_too_many_or_too_late_is_found(course, sql, told):
    planted(course, sql)
    assert told in "\n".join(found(course))


def test_a_lost_task_a_stranger_a_fault_and_a_long_log_are_found(course):
    course.submitted["c"] = "steps"
    assert "1 tasks are not done, such as ['c']" in found(course)
    del course.submitted["a"], course.submitted["c"]
    assert "nobody submitted ['a']" in found(course)
    course.faults.append("a worker ended with 1")
    assert "a worker ended with 1" in found(course)
    assert "the log of the store had 65 MB" in list(judging.by_the_way(course, 65.0))


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("UPDATE tasks SET state = 'ready', result = NULL WHERE id = 'a'", "a is ready, its last event says done"),
        ("UPDATE events SET kind = 'claimed' WHERE kind = 'completed'", "was completed 0 times"),
    ],
)
def test_a_store_that_contradicts_itself_is_found(course, sql, told):
    course.db.backend.store._write.connection().execute(sql).fetchall()
    assert told in "\n".join(found(course))
