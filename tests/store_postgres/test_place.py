"""Which store a URL means: the schema after a #, which goes along to whatever opens the same store."""

import pytest

import relet
from relet.core.errors import Invalid
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


def test_a_sidecar_renews_in_the_schema_of_its_lease(database):
    with relet.connect(database, schema="jobs") as db:
        db.submit("q", id="t")
        lease = db.claim("q", ttl="1s")
        with lease.keep(heartbeat="process"):
            before = db.task("t").last_heartbeat
            eventually(lambda: db.task("t").last_heartbeat > before)
