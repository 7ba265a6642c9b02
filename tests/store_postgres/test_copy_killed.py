"""A copy that is killed anywhere: there is always one store to work on, or one command left to be run."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from relet.connect import connect
from relet.core.errors import Refused, Unavailable
from relet.moving import copy_back, copy_store
from tests.store_postgres.copies import nothing, pages

pytestmark = [pytest.mark.postgres, pytest.mark.faults]
KILLED = Path(__file__).parent / "programs" / "copy_killed.py"
GIVEN_UP = "opening the copy 0"
"""What is said once the source has given itself up."""
TASKS = 12


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("RELET_STATE_DIR", str(tmp_path / "state"))
    url = f"sqlite:///{tmp_path}/work.db"
    with connect(url, holder="A") as db:
        db.submit_many("q", list(range(TASKS)), [f"t-{n}" for n in range(TASKS)])
        for lease in db.claim_many("q", TASKS // 2):
            lease.attach("page", str(lease.token).encode())
            lease.complete(lease.token)
    return url


def killed(verb, source, target, unit, n):
    """Where it died, or "done"."""
    done = subprocess.run(
        [sys.executable, KILLED, verb, source, target, unit, str(n)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == (0 if done.stdout == "done\n" else -9), done.stderr
    return done.stdout.strip()


def is_usable(url):
    """Can work be given to what is there; nothing is made where nothing is."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url) as connection:
            if connection.execute("SELECT to_regclass('relet.meta')").fetchone()[0] is None:
                return False
    try:
        with connect(url) as db:
            return db.queue("probe", paused=False) is not None
    except (Refused, Unavailable) as wrong:
        return wrong.code not in {"RELET-COPIED", "RELET-COPYING"}


def readings(url):
    with connect(url) as db:
        tasks = pages(db)
        return tasks, [db.history(task.id) for task in tasks], [bytes_of(db, task.id) for task in tasks]


def bytes_of(db, task_id):
    return [db.files.place.read(artifact.uri) for artifact in db.artifacts(task_id)]


def test_killed_at_each_point_it_is_run_again_and_is_whole(source, database):
    places = []
    while not places or places[-1] != GIVEN_UP:
        places.append(killed("copy", source, database, "said", len(places) + 1))
        assert is_usable(source) == (places[-1] != GIVEN_UP), places[-1]
        assert not is_usable(database), places[-1]
    assert len(places) == len(set(places)) > 12, places
    before = readings(source)
    done = copy_store(source, database, told=nothing)
    assert (done.ok, done.finished) == (True, True)
    assert not is_usable(source)
    assert readings(database) == before
    with connect(database) as db:
        assert db.verify().findings == []
        assert db.claim("q").token > done.tokens_above


def test_killed_between_any_two_statements_of_its_end_one_is_usable_once_it_was_run_again(source, database):
    places, n = [], 0
    while not places or places[-1] != "done":
        n += 1
        copy_store(source, database, told=nothing)
        places.append(killed("back", source, database, "statement", n))
        assert not (is_usable(source) and is_usable(database)), places[-1]
        copy_back(source, database) if not is_usable(source) else None
        assert is_usable(source), places[-1]
        assert not is_usable(database), places[-1]
    assert {"before the commit of the file", "after the commit of the file"} < set(places)
    assert copy_store(source, database, told=nothing).ok
    assert is_usable(database)
    assert not is_usable(source)


@pytest.mark.parametrize(("n", "place"), [(1, "before"), (2, "after")])
def test_killed_around_the_commit_by_which_the_source_gives_itself_up_nothing_is_lost(source, database, n, place):
    assert killed("copy", source, database, "commit", n) == f"{place} the commit of the file"
    assert is_usable(source) == (place == "before")
    assert not is_usable(database)
    done = copy_store(source, database, told=nothing)
    assert (done.ok, done.finished) == (True, place == "after")
    assert is_usable(database)
    assert not is_usable(source)
