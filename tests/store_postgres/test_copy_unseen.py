"""Who had the empty place open, and was cut off while a copy was brought there, goes on with the key of the copy."""

import psycopg
import pytest

import relet
from relet.testing import Clock
from tests.store_postgres.copies import Move
from tests.store_postgres.databases import OTHERS
from tests.waiting import eventually

pytestmark = pytest.mark.postgres


@pytest.fixture
def move(tmp_path, database):
    """Two tasks, the first of which is held, and lapses."""
    move = Move(tmp_path, Clock(), database)
    with move.source(holder="A") as db:
        db.submit_many("q", [1, 2], ["a", "b"])
        move.handle = db.claim("q", ttl="10s").handle
    move.clock.advance("11s")
    return move


def cut_off(move):
    with psycopg.connect(move.url, autocommit=True) as connection:
        connection.execute(OTHERS)


@pytest.fixture
def former(move):
    """It has seen the place empty, and nothing since."""
    with move.target(holder="F") as db:
        assert db.claim("q") is None
        cut_off(move)
        assert move.copy().ok
        yield db


def test_what_it_claims_is_its_own_for_all_others(move, former):
    lease = former.claim("q")
    with move.target() as db:
        db.lease(lease.handle).complete("ok")
    assert former.result(lease.task_id) == "ok"


def test_handles_of_others_are_good_where_it_looks_at_one_first(move, former):
    with move.target(holder="G") as db:
        lease = db.claim("q")
        former.lease(lease.handle).complete("ok")
        assert db.result(lease.task_id) == "ok"


def test_a_transaction_of_its_user_is_on_this_store(move, former):
    with psycopg.connect(move.url) as connection, connection.transaction():
        former.submit("q", 3, id="c", tx=connection)
    assert former.task("c").state == "ready"


def test_it_tells_and_hears_the_clients_of_the_copy(database, move):
    with relet.connect(database) as former:
        heard = former.backend.store.herald
        former.backend.watch()
        eventually(lambda: heard.is_told)
        cut_off(move)
        assert move.copy().ok
        former.tasks()
        eventually(lambda: heard.is_told)
        with relet.connect(database) as db:
            version = heard.version
            eventually(lambda: db.submit("q", 3) and heard.version > version)
