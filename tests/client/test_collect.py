"""What nobody names is removed from the place of artifacts, and what anything of the store names is not."""

import asyncio

import pytest

import relet
from relet.client.awaiting import AsyncClient
from relet.client.blocking import Client
from relet.testing.stores import open_store

LARGE = "x" * 300_000


@pytest.fixture
def littered(db):
    """Bytes that nobody names, and a task that names files as input, checkpoint, step, artifact and result."""
    stored = db.files.place.put(b"nobody's")
    db.submit("q", f"input {LARGE}", id="t-1")
    with db.claim("q").run() as run:
        run.save(f"checkpoint {LARGE}")
        run.step("write", lambda: f"step {LARGE}")
        run.attach("page", b"artifact")
        run.lease.complete(f"result {LARGE}")
    return stored.uri


def test_only_what_nobody_names_is_removed_once_it_is_old(db, clock, littered):
    assert (db.collect().n, db.collect("1h").n) == (0, 0)
    clock.advance("1d")
    assert db.collect().bytes == len(b"nobody's")
    assert not db.files.place.exists(littered)
    assert db.collect().n == 0
    task = db.task("t-1")
    assert (task.input, task.result) == (f"input {LARGE}", f"result {LARGE}")
    assert db.checkpoints("t-1")[0].value == f"checkpoint {LARGE}"
    assert db.steps("t-1")[0].value == f"step {LARGE}"
    assert db.open(db.artifacts("t-1")[0].uri).read() == b"artifact"


def test_a_dry_run_says_how_much_and_removes_nothing(db, clock, littered):
    clock.advance("1d")
    found = db.collect(dry_run=True)
    assert (found.n, found.bytes, found.dry_run) == (1, 8, True)
    assert db.files.place.exists(littered)


def test_what_another_tenant_names_stays(db, clock, tmp_path, littered):
    other = open_store(tmp_path, clock, tenant="blue")
    mine = open_store(tmp_path, clock)
    with mine, other:
        other.submit("q", LARGE, id="t-1")
        clock.advance("2d")
        assert mine.collect().n == 0
        assert other.task("t-1").input == LARGE


@pytest.mark.parametrize("older", [0, "59m", -1, "soon", None])
def test_less_than_an_hour_is_refused(db, littered, clock, older):
    clock.advance("2d")
    with pytest.raises(relet.Invalid) as refused:
        db.collect(older)
    assert refused.value.detail["field"] == "older"
    assert db.files.place.exists(littered)


def test_dry_run_is_a_flag(db):
    with pytest.raises(relet.Invalid):
        db.collect("1d", "no")


def test_a_client_without_a_place_says_how_to_get_one(db):
    with pytest.raises(relet.Invalid, match="connect"):
        Client(db.backend).collect()
    with pytest.raises(relet.Invalid, match="connect"):
        Client(db.backend, files=lambda: db.files.place).collect()


def test_an_awaiting_client_collects_too(db, clock, littered):
    clock.advance("1d")
    assert asyncio.run(AsyncClient(db).collect(dry_run=True)).n == 1
