"""A commit that fails: undone for certain and said so, or unknown and repeated where that is safe."""

import apsw
import pytest

from relet.core.catalog import BY_NAME
from relet.core.errors import Error, LeaseLost, OutcomeUnknown, Unavailable
from relet.core.model import State
from relet.store.sqlite import lane as lanes
from tests.store.disk import always, failing_disk, once
from tests.store.inside import ask, contents, lane


@pytest.fixture
def disk():
    with failing_disk() as disk:
        yield disk


@pytest.fixture
def db(disk, connect, clock):
    """The store on the failing disk, with a task that waits and one that is held."""
    db = connect(clock)
    db.submit("q", 1, id="held")
    db.held = db.claim("q", holder="A")
    db.submit("q", 2, id="waits")
    yield db
    disk.fails = None


VERBS = {
    "submit": lambda db: db.submit("q", 3, id="new"),
    "claim": lambda db: db.claim("q", holder="B"),
    "save": lambda db: db.held.save({"page": 1}),
    "complete": lambda db: db.held.complete({"done": True}),
    "fail": lambda db: db.held.fail("no"),
    "release": lambda db: db.held.release(),
    "cancel": lambda db: db.cancel("waits"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_undoes_everything_and_says_so(db, disk, tmp_path, verb):
    before = contents(tmp_path)
    disk.fails = always("write", apsw.FullError("full"))
    with pytest.raises(Unavailable, match="the disk is full; nothing was written") as full:
        VERBS[verb](db)
    assert (full.value.code, full.value.retryable) == ("RELET-FULL", True)
    disk.fails = None
    assert contents(tmp_path) == before
    VERBS[verb](db)
    assert contents(tmp_path) != before


def test_a_file_that_may_not_grow_undoes_everything(db, tmp_path):
    pages = lane(db).connection().pragma("page_count")
    lane(db).connection().pragma("max_page_count", pages)
    before = contents(tmp_path)
    with pytest.raises(Unavailable) as full:
        db.submit("q", "x" * 100_000)
    assert full.value.code == "RELET-FULL"
    assert contents(tmp_path) == before
    lane(db).connection().pragma("max_page_count", 1 << 30)
    assert db.submit("q", "x" * 100_000).created


@pytest.mark.parametrize("verb", VERBS)
def test_an_error_at_commit_is_repeated_once_and_that_is_all_that_is_seen_of_it(db, disk, tmp_path, verb):
    disk.fails = once("sync", apsw.IOError("bad sector"))
    VERBS[verb](db)
    assert disk.fails("sync") is None, "it did happen"
    states = {"complete": "done", "fail": "ready", "release": "ready"}
    assert db.task("held").state == states.get(verb, "leased")


@pytest.mark.parametrize("verb", VERBS)
def test_an_error_at_commit_that_stays_is_an_unknown_outcome(db, disk, verb):
    disk.fails = always("sync", apsw.IOError("bad sector"))
    with pytest.raises(OutcomeUnknown, match="it may or may not have been kept") as unknown:
        VERBS[verb](db)
    assert (unknown.value.code, unknown.value.retryable) == ("RELET-COMMIT", False)
    disk.fails = None
    VERBS[verb](db)


def test_what_is_not_safe_to_repeat_is_not_repeated(db, disk, tmp_path):
    assert not BY_NAME["requeue"].replay_safe
    db.cancel("waits")
    disk.fails = once("sync", apsw.IOError("bad sector"))
    with pytest.raises(OutcomeUnknown):
        db.requeue("waits")
    assert db.task("waits").state is State.CANCELLED


@pytest.fixture
def deaf(monkeypatch):
    """The next commit is kept, and its answer lost."""
    real = lanes.commit

    def commit(connection):
        real(connection)
        monkeypatch.setattr(lanes, "commit", real)
        raise OutcomeUnknown("the answer was lost", code="RELET-COMMIT")

    return lambda: monkeypatch.setattr(lanes, "commit", commit)


@pytest.mark.case("HT-01")
def test_a_claim_whose_answer_was_lost_gets_the_lease_that_it_was_granted(db, deaf, tmp_path):
    deaf()
    lease = db.claim("q", holder="B")
    assert lease.task_id == "waits"
    assert lease.token == db.task("waits").token
    assert len(ask(tmp_path, "SELECT 1 FROM leases")) == 2
    assert db.claim("q") is None


def test_many_leases_whose_answer_was_lost_come_back_all(db, deaf):
    db.submit_many("q", range(3))
    deaf()
    leases = db.claim_many("q", 10)
    assert len(leases) == len({lease.token for lease in leases}) == 4


@pytest.mark.parametrize("verb", ["submit", "complete", "fail", "release", "cancel"])
def test_a_verb_whose_answer_was_lost_is_done_once(db, deaf, tmp_path, verb):
    deaf()
    events = len(ask(tmp_path, "SELECT 1 FROM events"))
    VERBS[verb](db)
    assert len(ask(tmp_path, "SELECT 1 FROM events")) == events + 1


def test_a_completion_whose_answer_was_lost_keeps_the_lease_that_came_with_it(db, deaf):
    deaf()
    following = db.held.complete(1, claim_next=True)
    assert following.task_id == "waits"
    assert following.token == db.task("waits").token


def test_an_operation_that_was_not_kept_may_be_sent_again_by_hand(db, deaf):
    db.cancel("waits")
    deaf()
    with pytest.raises(OutcomeUnknown):
        db.requeue("waits")
    assert db.task("waits").state is State.READY, "it had been kept; whoever asks again has to look"


@pytest.mark.parametrize("stays", [False, True], ids=["once", "always"])
def test_a_heartbeat_that_may_be_lost_is_not_worth_a_failure_of_the_disk(db, disk, stays):
    """Renewals are written without a sync."""
    disk.fails = (always if stays else once)("sync", apsw.IOError("bad sector"))
    assert db.held.renew() == 60.0


def test_acknowledged_is_on_disk_except_renewals(db, disk):
    for verb, synced in [("renew", 0), ("submit", 1), ("claim", 1), ("save", 1), ("complete", 1)]:
        disk.synced.clear()
        if verb == "renew":
            db.held.renew()
        else:
            VERBS[verb](db)
        assert disk.synced.count("relet.db-wal") == synced, verb


def test_a_lapse_that_a_renewal_sees_is_on_disk_before_it_is_told(db, disk):
    db.clock.advance(60)
    disk.synced.clear()
    with pytest.raises(Error, match="expired"):
        db.held.renew()
    assert disk.synced.count("relet.db-wal") == 1
    assert [event.kind for event in db.history("held")][-1] == "lapsed"


def test_a_renewal_of_many_that_sees_one_lapse_renews_the_others_durably_too(db, disk):
    db.submit("q", 3, id="short", ttl=1)
    short = db.claim(task_id="short")
    db.clock.advance(1)
    disk.synced.clear()
    lost, left_s = db.renew_many([short, db.held])
    assert (lost.reason, left_s) == ("expired", 60.0)
    assert disk.synced.count("relet.db-wal") == 1


def test_a_lapse_that_could_not_be_written_is_not_told(db, disk):
    """Else a clock or a crash could revive what somebody was told is over."""
    db.clock.advance(60)
    disk.fails = always("write", apsw.FullError("full"))
    with pytest.raises(Unavailable) as full:
        db.held.renew()
    assert full.value.code == "RELET-FULL"
    assert not db.held.lost.is_set()


@pytest.mark.parametrize(
    "failure", [Unavailable("busy"), OutcomeUnknown("the answer was lost")], ids=["busy", "unknown"]
)
def test_a_record_of_a_refusal_that_fails_alters_no_answer(db, monkeypatch, failure):
    db.held.complete(1)
    real = lanes.commit

    def commit(connection):
        real(connection)
        monkeypatch.setattr(lanes, "commit", fail)

    def fail(_connection):
        raise failure

    monkeypatch.setattr(lanes, "commit", commit)
    with pytest.raises(LeaseLost, match="ended by its own holder"):
        db.held.release()
