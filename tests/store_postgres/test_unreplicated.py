"""A commit that its standby may not have is not acknowledged, in whatever language the server says so."""

import threading

import pytest

import relet
from tests.postgres import PostgresServer
from tests.replicas import Replicas
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
ENDINGS = {
    "cancelled": "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
    "terminated": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
}
GERMAN = {"LANGUAGE": "de"}
"""Where the messages of the server are installed; it speaks English elsewhere."""


@pytest.fixture
def pair(monkeypatch):
    english = PostgresServer._environment
    monkeypatch.setattr(PostgresServer, "_environment", lambda server: english(server) | GERMAN)
    with Replicas("15", lc_messages="C.utf8") as pair:
        pair.primary.execute("CREATE TABLE mine AS SELECT 0 AS n")
        yield pair


def verb(db):
    """One that is not repeated by itself."""
    db.submit("work", id="t")
    db.claim("work", ttl=60).fail("no", retry=False)
    return lambda: db.requeue("t")


def statement(db):
    db.submit("work", id="t")
    lease = db.claim("work", ttl=60)

    def write():
        with lease.transaction() as connection:
            connection.execute("UPDATE mine SET n = 1")

    return write


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("begun", [verb, statement])
def test_a_commit_whose_wait_for_the_standby_was_cut_short_is_unknown(pair, begun, ending):
    with relet.connect(pair.primary.url()) as db:
        commit = begun(db)
        pair.part()
        over = threading.Event()

        def end():
            while not over.wait(0.01):
                eventually(lambda: over.is_set() or pair.primary.value(WAITS))
                pair.primary.value(ENDINGS[ending])

        ender = threading.Thread(target=end)
        ender.start()
        try:
            with pytest.raises(relet.OutcomeUnknown):
                commit()
        finally:
            over.set()
            ender.join()


def test_a_warning_of_a_users_own_is_none_of_that(database):
    with relet.connect(database) as db:
        db.submit("work")
        with db.claim("work", ttl=60).transaction() as connection:
            connection.execute("CREATE TABLE warned (n int)")
            connection.execute(
                "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE WARNING 'late'; RETURN NULL; END $$"
            )
            connection.execute(
                "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON warned DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION warn()"
            )
            connection.execute("INSERT INTO warned VALUES (1)")
            connection.execute("DROP TABLE IF EXISTS nothing")
