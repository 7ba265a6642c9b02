"""Workers of the former release and of this one on one store: they get on, or the old one stops before it writes."""

import apsw
import pytest

import relet
from relet.store.migrate import SCHEMA
from relet.store.sqlite.upgrade import migrate

SECONDS = 3


@pytest.fixture
def path(url, made_by_former, state):
    migrate(url)
    return url.removeprefix("sqlite:///")


def test_old_and_new_workers_work_on_one_store(url, path, start):
    with relet.connect(url) as db:
        db.submit_many("q", range(200))
        workers = [start("busy.py", url, SECONDS, former_library=former) for former in (True, False, True, False)]
        assert [worker.value() for worker in workers] == [1, SCHEMA, 1, SCHEMA]
        for worker in workers:
            worker.tell("go")
        done = [worker.value() for worker in workers]
        assert all(worker.wait() == 0 for worker in workers), [worker.errors for worker in workers]
        assert all(len(mine) > 5 for mine in done), [len(mine) for mine in done]
        together = [tuple(one) for mine in done for one in mine]
        assert len({task for task, _ in together}) == len({token for _, token in together}) == len(together)
        assert all(db.result(task) == token for task, token in together[:50])
        assert db.verify().findings == []


def test_an_old_worker_that_is_killed_is_taken_over_by_a_new_one(url, path, said_by_former):
    assert said_by_former(url, "import os\ndb.claim('q', ttl=0.2).save('so far')\nos._exit(0)") == ""
    with relet.connect(url) as db:
        lease = db.claim("q", wait=10)
        assert (lease.task_id, lease.attempt, lease.load()) == ("ready", 2, "so far")
        lease.complete("by the new one")
        assert db.verify().ok


def test_what_was_pruned_gets_no_second_life_from_an_old_client_either(url, path, said_by_former):
    connection = apsw.Connection(path)
    connection.execute("UPDATE tasks SET updated_wall_ms = 0 WHERE id = 'done'")
    connection.close()
    with relet.connect(url) as db:
        assert db.prune("1d").ids == ["done"]
    assert "RELET-GONE" in said_by_former(url, "db.submit('q', 1, id='done')")
    with relet.connect(url) as db:
        assert db.verify().ok


def test_an_old_worker_stops_before_it_writes_once_the_store_asks_for_newer_ones(url, path, said_by_former):
    connection = apsw.Connection(path)
    connection.execute(f"UPDATE meta SET min_writer = {SCHEMA}")
    connection.close()
    said = said_by_former(url, "db.claim('q')")
    assert "UpgradeRequired" in said
    assert "pip install --upgrade relet" in said
    with relet.connect(url) as db:
        assert db.task("ready").state == "ready"
