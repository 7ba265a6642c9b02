"""The feed waits for what may still come, also for what a standby cannot know, and no session has any more."""

import psycopg
import pytest

import relet
from relet.core.rules.inspect import Changes
from tests.postgres import PostgresServer
from tests.replicas import Replicas
from tests.store_postgres.test_locks import ADD_EVENT, feed

pytestmark = pytest.mark.postgres


def test_a_standby_reads_past_nothing_that_its_primary_may_still_commit():
    with Replicas(synchronous=False) as pair, relet.connect(pair.primary.url()) as db:
        db.submit("q", id="first")
        pair.catch_up()
        with relet.connect(pair.standby.url()) as reader, psycopg.connect(pair.primary.url()) as writer:
            seen = reader.history("first")[-1].seq
            writer.execute(ADD_EVENT)
            db.submit("q", id="second")
            pair.catch_up()
            assert reader.task("second").state == "ready"
            assert feed(reader, seen) == []
            begun = reader.backend.call(Changes()).cursor
            writer.commit()
            pair.catch_up()
            assert feed(reader, seen) == [("first", "saved"), ("second", "submitted")]
            assert ("first", "saved") in feed(reader, begun)


def test_what_was_prepared_may_still_come():
    with PostgresServer(max_prepared_transactions=5) as server, server.database() as url, relet.connect(url) as db:
        db.submit("q", id="first")
        seen = db.history("first")[-1].seq
        with psycopg.connect(url, autocommit=True) as writer:
            writer.execute("BEGIN")
            writer.execute(ADD_EVENT)
            writer.execute("PREPARE TRANSACTION 'later'")
            db.submit("q", id="second")
            assert feed(db, seen) == []
            writer.execute("COMMIT PREPARED 'later'")
        assert feed(db, seen) == [("first", "saved"), ("second", "submitted")]
