"""What only PostgreSQL knows: used where it is there, and done without elsewhere."""

import psycopg
import pytest

import relet
from relet.connect import diagnose
from relet.core.errors import Invalid
from relet.store.postgres import connect
from relet.store.postgres.connect import CAN_DO_WITHOUT, WITHOUT
from relet.store.postgres.texts import Dialect
from relet.store.postgres.tuned import untuned
from relet.store.postgres.upgrade import migrate

pytestmark = pytest.mark.postgres
FILE = ["tuning.sql"]


def missing(url):
    with psycopg.connect(url, cursor_factory=psycopg.RawCursor) as connection:
        return untuned(connection, Dialect())


def worked(url):
    with relet.connect(url) as db:
        db.submit("q", 1)
        return db.claim("q").complete(2)


def test_tables_are_set_as_is_best_for_them(database):
    worked(database)
    assert missing(database) == []


@pytest.mark.parametrize("word", ["SET (no_such_setting = 1)", "SET UNHEARD OF"])
def test_a_server_that_refuses_the_settings_is_used_without_them(database, monkeypatch, word):
    monkeypatch.setattr(connect, "TUNING", connect.TUNING | {"other": f"ALTER TABLE relet.leases {word}"})
    worked(database)
    assert missing(database) == list(connect.TUNING)[:-1], "all of them or none"


def test_settings_that_are_forbidden_are_not_made_and_migrate_makes_them_later(database, monkeypatch):
    monkeypatch.setenv(WITHOUT, "tuning")
    worked(database)
    assert missing(database) == list(connect.TUNING)
    assert migrate(database).steps == []
    assert (
        "RELET_POSTGRES_WITHOUT" in {one.check: one.fix for one in diagnose(database, "default").findings}["tables"]
    )
    monkeypatch.delenv(WITHOUT)
    assert migrate(database).steps == FILE
    assert (missing(database), migrate(database).steps) == ([], [])


def test_a_name_that_is_none_is_refused_with_those_that_there_are(database, monkeypatch):
    monkeypatch.setenv(WITHOUT, "listen, bogus,")
    names = f"^{WITHOUT}: 'bogus' is none of listen, prepare, skip_locked, run, tuning"
    with pytest.raises(Invalid, match=names):
        relet.connect(database)
    with pytest.raises(Invalid, match=names):
        diagnose(database, "default")


@pytest.mark.parametrize("name", CAN_DO_WITHOUT)
def test_doctor_names_what_is_done_without(database, monkeypatch, name):
    worked(database)
    monkeypatch.setenv(WITHOUT, f"{name},")
    seen = {one.check: one.seen for one in diagnose(database, "default").checks}
    assert f"RELET_POSTGRES_WITHOUT does without {name}" in seen["sessions"]


def test_on_a_server_that_tells_no_run_an_operator_says_that_a_copy_goes_on(database, monkeypatch):
    monkeypatch.setenv(WITHOUT, "run,tuning")
    with relet.connect(database) as db:
        db.submit("q", 1, id="held")
        held = db.claim("q", ttl="1h")
        db.submit_many("q", [2, 3])
        last = db.claim("q").token
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DELETE FROM relet.run")
            granted = db.claim("q").token
            assert granted > last + 1_000, "a leap, by the time that has passed"
            assert connection.execute("SELECT count(*) FROM relet.events WHERE kind = 'outage'").fetchone() == (1,)
        held.renew()
