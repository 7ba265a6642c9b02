"""Which store a URL means: the schema after a #, which goes along to whatever opens the same store."""

import psycopg
import pytest

import relet
from relet.connect import diagnose
from relet.core.errors import Invalid
from relet.store.postgres.upgrade import migrate
from relet.store.postgres.upkeep import is_there
from tests.waiting import eventually

pytestmark = pytest.mark.postgres


def test_a_schema_is_named_by_the_url_too(database):
    with relet.connect(database, schema="jobs") as db, relet.connect(f"{database}#jobs") as same:
        db.submit("q", id="t")
        assert same.task("t").id == "t"
        assert db.backend.url == same.backend.url == f"{database}#jobs"
        assert "schema jobs" in same.backend.place
        with relet.connect(database) as other:
            assert other.tasks() == []


def test_a_url_and_an_argument_that_differ_are_refused(database):
    with pytest.raises(Invalid, match=r"^schema: the URL names 'jobs', and 'work' is asked for"):
        relet.connect(f"{database}#jobs", schema="work")
    with pytest.raises(Invalid, match=r"^schema: the URL names 'jobs', and 'relet' is asked for"):
        relet.connect(f"{database}#jobs", schema="relet")
    relet.connect(f"{database}#jobs", schema="jobs").close()


def test_a_sidecar_renews_in_the_schema_of_its_lease(database):
    with relet.connect(database, schema="jobs") as db:
        db.submit("q", id="t")
        lease = db.claim("q", ttl="1s")
        with lease.keep(heartbeat="process"):
            before = db.task("t").last_heartbeat
            eventually(lambda: db.task("t").last_heartbeat > before)


@pytest.mark.parametrize("word", ["user", "order", "table", "select", "current_user"])
def test_a_schema_may_have_the_name_of_a_word(database, word):
    """Also where it is moved to, and looked after."""
    try:
        with relet.connect(database, schema=word) as db:
            db.submit("q", 1, exclusive="k", share="s")
            with psycopg.connect(database) as mine:
                mine.execute("SELECT 1")
                db.submit("q", 2, tx=mine)
            for lease in db.claim_many("q", 2):
                lease.complete()
            assert db.sweep() == 0
            assert db.backend.verify().findings == []
        found = {finding.check for finding in diagnose(f"{database}#{word}", "default").findings}
        assert not found & {"opens", "tables"}
        assert migrate(database, word, dry_run=True).steps == []
        assert is_there(database, word)
    finally:
        with psycopg.connect(database) as connection:
            connection.execute(f'DROP SCHEMA IF EXISTS "{word}" CASCADE')
