"""A file that was moved, restored or copied is taken over by an operator, and by nobody while it is in use."""

import shutil

import pytest

from relet.connect import connect
from relet.core import limits
from relet.core.errors import Unavailable
from relet.store.sqlite.adopt import adopt
from relet.testing.clock import Clock
from relet.testing.stores import open_store


@pytest.fixture
def moved(tmp_path):
    """A store that another machine made, with a lease open; and the clock of this one."""
    there, here = tmp_path / "there", tmp_path / "elsewhere"
    there.mkdir()
    with open_store(there, Clock(boot="there")) as db:
        db.submit("q", id="t-1")
        lease = db.claim("q", holder="A", ttl=60)
        db.submit("q", id="t-2")
    shutil.copytree(there, here, ignore=shutil.ignore_patterns("state"))
    clock = Clock(boot="here")
    clock.boot = clock.boot._replace(machine_id="this-machine")
    clock.advance("10d")
    return here, clock, lease


def taken(folder, clock, **options):
    return adopt(f"sqlite:///{folder}/relet.db", clock=clock, state=folder / "state", **options)


def test_a_moved_file_is_refused_until_it_is_adopted(moved):
    here, clock, lease = moved
    with pytest.raises(Unavailable, match="relet adopt"):
        open_store(here, clock)
    done = taken(here, clock)
    assert (done.moved, done.extended, done.former_id) == (True, 1, None)
    with open_store(here, clock) as db:
        again = db.lease(lease.handle)
        assert again.status == "held"
        assert again.expires_in == 60  # however long the move took


def test_tokens_go_on_above_all_that_were_given_out(moved):
    here, clock, lease = moved
    done = taken(here, clock)
    assert done.epoch > (clock.wall_ms() - 1_735_689_600_000) // limits.HOUR_MS
    with open_store(here, clock) as db:
        token = db.claim("q", holder="B").token
        assert token > max(lease.token, done.tokens_above)
        assert token >> limits.TOKEN_BITS == done.epoch


def test_a_known_token_and_the_side_file_raise_the_epoch(moved):
    here, clock, _ = moved
    first = taken(here, clock)
    assert taken(here, clock).epoch == first.epoch + 1
    high = taken(here, clock, above=(first.epoch + 500) << limits.TOKEN_BITS | 7)
    assert high.epoch == first.epoch + 501
    shutil.copy(here / "relet.db", here / "older.db")
    later = taken(here, clock)
    shutil.copy(here / "older.db", here / "relet.db")
    assert taken(here, clock).epoch == later.epoch + 1  # the side file remembers what the restored file does not


def test_a_copy_becomes_a_store_of_its_own(moved):
    here, clock, _ = moved
    first = taken(here, clock)
    copy = taken(here, clock, copy=True)
    assert copy.former_id == first.store_id != copy.store_id
    assert (here / "state" / copy.store_id).exists()
    with open_store(here, clock) as db:
        assert db.backend.store.identity.store_id == copy.store_id


def test_on_the_same_boot_the_clock_goes_on_without_a_jump(tmp_path):
    clock = Clock()
    with open_store(tmp_path, clock) as db:
        db.submit("q", id="t-1")
        lease = db.claim("q", ttl=60)
        before = db.backend.store.identity.read_clock().now_ms
    clock.advance("30s")
    assert taken(tmp_path, clock).moved is False
    with open_store(tmp_path, clock) as db:
        assert db.backend.store.identity.read_clock().now_ms == before + 30_000
        assert db.lease(lease.handle).expires_in == 60


def test_what_was_done_is_in_the_history_of_the_store(moved):
    here, clock, _ = moved
    taken(here, clock)
    with open_store(here, clock) as db:
        row = (
            db.backend.store._write.connection()
            .execute("SELECT kind, detail FROM events ORDER BY seq DESC")
            .fetchone()
        )
    assert row == ("outage", '{"why":"adopted"}')


def test_it_is_refused_while_anybody_has_the_store_open(relet, db, folder):
    db.submit("q", id="t-1")
    done = relet("adopt", "--json")
    assert (done.code, done.out) == (11, "")
    assert done.error["code"] == "RELET-IN-USE"
    db.close()
    assert relet("adopt").code == 0


def test_it_says_what_it_did(relet, folder):
    relet("submit", "q", "--id", "t-1")
    relet("claim", "q", "--handle-file", "h")
    told = relet("adopt", "--copy").out
    assert f"{folder}/relet.db" in told
    assert ", a copy of " in told
    assert "1 open ones have a whole ttl from now" in told
    assert relet("renew", "--handle-file", "h").code == 10, "a handle of the original"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--url", "sqlite:///absent.db"], 10),
        (["--url", "sqlite://"], 2),
        (["--url", "postgresql://x/y"], 2),
        (["--url", "sqlite:///words.txt"], 2),
        (["--url", "sqlite:///empty"], 2),
        (["--above", "x"], 2),
        (["--above", "-1"], 2),
        (["--above", str(limits.TOKEN_MAX + 1)], 2),
        (["--above", str(limits.TOKEN_MAX)], 2),
    ],
)
def test_what_cannot_be_adopted_is_refused_and_left_as_it_is(relet, folder, args, code):
    relet("claim", "q")
    (folder / "words.txt").write_text("words")
    (folder / "empty").touch()
    before = (folder / "relet.db").read_bytes()
    assert relet("adopt", *args).code == code
    assert not (folder / "absent.db").exists()
    assert (folder / "words.txt").read_text() == "words"
    assert (folder / "empty").stat().st_size == 0
    assert (folder / "relet.db").read_bytes() == before
    with connect(f"sqlite:///{folder}/relet.db") as db:
        db.submit("q")
        assert db.claim("q").token >> limits.TOKEN_BITS == 0  # still the first epoch
