"""A store moves from its file into a database: all of it, nobody works on both, and tokens go on above."""

import psycopg
import pytest

from relet.core import limits
from relet.core.errors import Conflict, LeaseLost, NotFound, Unavailable
from relet.core.rules.sweep import Sweep
from relet.store.sqlite.adopt import adopt
from relet.store.sqlite.restore import restore
from relet.testing import Clock
from tests.store_postgres.copies import Move, readings, with_two_tasks
from tests.store_postgres.rich import fill

pytestmark = pytest.mark.postgres


@pytest.fixture
def move(tmp_path, database):
    return Move(tmp_path, Clock(), database)


@pytest.fixture
def small(move):
    return with_two_tasks(move)


def there(move, query):
    with psycopg.connect(move.url, autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]


def test_whatever_a_client_reads_it_reads_of_the_copy_too(move):
    fill(move)
    with move.source() as db, move.source("elsewhere") as other:
        own, others = readings(db), readings(other)
    done = move.copy()
    assert done.ok
    assert [table for table, n in done.rows.items() if not n] == [], "something of everything was copied"
    with move.target() as db, move.target("elsewhere") as other:
        assert db.verify().findings == []
        assert readings(db) == own
        assert readings(other) == others


def test_work_goes_on_where_it_was(move):
    handles = fill(move)
    above = move.copy().tokens_above
    with move.target(holder="B") as db:
        db.decide("open", "publish", "accept")
        lease = db.claim(task_id="open")
        assert lease.token > above
        with lease.run() as run:
            assert run.step("search", pytest.fail, [("found", "open")]) == {"found": "open"}, "as it is remembered"
            assert run.approval("publish", ask={"name": "open"}, timeout="9d", default="deny").accepted
            lease.complete(1)
        db.signal("signalled", "payment", 7)
        with db.claim(task_id="signalled").run() as run:
            run.step("search", pytest.fail, [("found", "signalled")])
            assert [run.receive("payment", timeout="5d"), run.receive("other"), run.receive("other")] == [
                7,
                1,
                {"two": 2},
            ]
        assert db.effects("unknown")
        for effect in db.effects("unknown"):
            db.reconcile(effect.id, "applied", receipt={"seen": True})
        assert db.effects("unknown") == []
        with pytest.raises(Conflict) as gone:
            db.submit("short", 1, id="g-1")
        assert gone.value.code == "RELET-GONE"
        assert db.lease(handles["done"]).complete({"ok": True}) is None, "the same again is as good as the first"
        assert db.verify().findings == []


def test_old_handles_prove_what_they_proved_and_others_nothing(move):
    handles = fill(move)
    move.copy()
    with move.target() as db:
        with pytest.raises(LeaseLost) as lost:
            db.lease(handles["lost"]).renew()
        assert lost.value.reason == "superseded"
        with pytest.raises(LeaseLost) as closed:
            db.lease(handles["done"]).save(1)
        assert closed.value.reason == "closed"
        name, token, secret, task = handles["lost"].split(".")
        with pytest.raises(NotFound):
            db.lease(f"{name}.{token}.{'0' * len(secret)}.{task}").renew()


def test_numbers_go_on_above_all_that_were_ever_given(move):
    with move.source() as db:
        db.submit_many("q", [1, 2, 3], ["a", "b", "c"])
        for lease in db.claim_many("q", 3):
            lease.complete()
        db.submit("q", 4, id="d")
        db.clock.advance(120)
        db.prune("1m", queue="q")
        events = [event.seq for event in db.history("d")]
    move.copy()
    with move.target() as db:
        db.submit("q", 5, id="e")
        assert db.history("e")[0].seq > events[-1]
    assert there(move, "SELECT seq FROM relet.tasks WHERE id = 'e'") == 5


def test_delays_and_rates_are_counted_on_by_the_other_clock(move):
    with move.source() as db:
        db.submit("q", 1, id="soon", delay=60)
        db.queue("slow", rate="1/1m")
        db.submit_many("slow", [1, 2])
        db.claim("slow").complete()
        due = db.task("soon").due_at
    other = Clock()
    other._mono_ms += 10**9
    move.copy(clock=other)
    move.clock = other
    with move.target() as db:
        assert db.task("soon").due_at == due
        other.advance(50)
        assert db.claim("slow") is None
        other.advance(9)
        assert db.claim("q") is None
        other.advance(1)
        assert db.claim("q").task_id == "soon"
        assert db.claim("slow") is not None


def test_tokens_go_on_above_an_epoch_that_the_file_itself_does_not_know(small):
    with small.source() as db:
        store_id = db.backend.store.identity.store_id
    (small.folder / "state" / store_id).write_text(f"{1 << 20} 5\n")
    small.copy()
    with small.target() as db:
        assert db.claim("q").token >> limits.TOKEN_BITS > 1 << 20


# -- what stands against it ------------------------------------------------------------------------------------------


def test_a_lease_that_lives_keeps_a_store_where_it_is_and_one_that_has_expired_does_not(small):
    with small.source(holder="worker-7") as db:
        db.claim("q", ttl=60)
    with pytest.raises(Conflict, match=r"worker-7 holds task b of default for another 60\.0 s") as held:
        small.copy()
    assert held.value.code == "RELET-IN-USE"
    assert held.value.detail["held"][0]["holder"] == "worker-7"
    assert small.plan().held[0].task == "b"
    small.clock.advance(60)
    assert small.plan().lapsed == 1
    done = small.copy()
    assert (done.ok, done.lapsed) == (True, 1)
    with small.target() as db:
        assert db.task("b").losses == 1


def test_a_store_that_is_open_is_not_copied(small):
    with small.source(), pytest.raises(Conflict, match="is open in") as open_:
        small.copy()
    assert open_.value.code == "RELET-IN-USE"


def test_a_place_with_other_tasks_is_left_as_it_is(small):
    with small.target() as db:
        db.submit("theirs", 1, id="theirs")
    with pytest.raises(Conflict, match="it holds the tasks") as taken:
        small.copy()
    assert taken.value.code == "RELET-OTHER-STORE"
    with small.target() as db, small.source() as source:
        assert [task.id for task in db.tasks()] == ["theirs"]
        source.submit("q", 3)


def test_an_empty_store_gives_way_unless_somebody_has_it_open(small):
    with small.target() as db:
        assert db.stats().queues == []
        with pytest.raises(Conflict, match="sessions of relet") as open_:
            small.copy()
        assert open_.value.code == "RELET-IN-USE"
    assert small.copy().ok
    with small.target() as db:
        assert db.claim("q").task_id == "b"


def test_a_place_that_waits_for_another_copy_is_not_taken(small, tmp_path):
    small.copy()
    small.back()
    (tmp_path / "second").mkdir()
    second = Move(tmp_path / "second", Clock(), small.url)
    with second.source() as db:
        db.submit("q", 1)
    with pytest.raises(Conflict, match="another store is being copied there"):
        second.copy()


def test_bytes_that_are_missing_keep_a_store_where_it_is(small):
    with small.source() as db:
        lease = db.claim("q")
        uri = lease.attach("page", b"bytes").uri
        lease.release()
    (path,) = (small.folder / "relet.db-artifacts").glob("sha256/*/*")
    path.write_bytes(b"other")
    done = small.copy()
    assert [(finding.rule, finding.row) for finding in done.findings] == [("bytes-are-there", uri)]
    path.unlink()
    assert small.plan().findings == done.findings == small.copy().findings
    with small.source() as db:
        db.submit("q", 3)
    with pytest.raises(psycopg.errors.UndefinedTable):
        there(small, "SELECT count(*) FROM relet.tasks")


def test_a_source_that_does_not_hold_what_must_hold_stays_where_it_is(small):
    import apsw

    connection = apsw.Connection(str(small.folder / "relet.db"))
    connection.execute("UPDATE tasks SET attempt = 7 WHERE id = 'b'")
    connection.close()
    done = small.copy()
    assert [finding.row for finding in done.findings] == ["task b"]
    assert small.plan().findings == done.findings


# -- nobody works on both --------------------------------------------------------------------------------------------


def test_whoever_would_write_into_the_file_is_told_where_its_store_is(small):
    with small.source() as db:
        handle = db.claim("q", ttl=1).handle
    small.clock.advance(1)
    place = small.copy().place
    with small.source() as db:
        for write in (
            lambda: db.submit("q", 3), lambda: db.claim("q"), lambda: db.cancel("b"), db.sweep,
            lambda: db.lease(handle).renew(), lambda: db.queue("q", paused=True),
        ):  # fmt: skip
            with pytest.raises(Conflict) as moved:
                write()
            assert (moved.value.code, moved.value.detail) == ("RELET-COPIED", {"place": place})
            assert place in str(moved.value)
        assert [task.id for task in db.tasks()] == ["a", "b"], "it can be read"
        assert db.verify().findings == []


def test_it_is_told_after_the_machine_was_started_anew_and_by_those_who_take_files_over(small):
    with small.source() as db:
        db.backup(small.folder / "before.db")
    small.copy()
    file = f"sqlite:///{small.folder / 'relet.db'}"
    with pytest.raises(Conflict) as moved:
        adopt(file, clock=small.clock, state=small.folder / "state")
    assert moved.value.code == "RELET-COPIED"
    with small.source() as db:
        db.backup(small.folder / "after.db")
    for backup in ("before.db", "after.db"):
        with pytest.raises(Conflict) as moved:
            restore(file, small.folder / backup, clock=small.clock, state=small.folder / "state")
        assert moved.value.code == "RELET-COPIED"
    small.clock = Clock(boot="another")
    with pytest.raises(Conflict) as moved:
        small.source()
    assert moved.value.code == "RELET-COPIED"


def test_a_copy_that_was_made_is_not_made_again(small):
    first = small.copy()
    with small.target() as db:
        db.submit("q", 3, id="c")
    again = small.copy()
    assert (again.finished, again.epoch, again.place) == (True, first.epoch, first.place)
    with small.target() as db:
        assert [task.id for task in db.tasks()] == ["a", "b", "c"]


def test_an_epoch_that_went_over_into_the_numbers_counts_as_what_it_is(small):
    first = small.copy()
    there(small, "UPDATE relet.meta SET epoch = epoch - 3 RETURNING 1")
    there(small, f"SELECT setval('relet.tokens', {5 << limits.TOKEN_BITS | 7})")
    assert small.copy().epoch == first.epoch
    small.back()
    with small.source() as db:
        assert db.claim("q").token >> limits.TOKEN_BITS > first.epoch + 2


def test_a_copy_that_is_lost_is_not_made_up_for(small):
    small.copy()
    with psycopg.connect(small.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA relet CASCADE")
    with pytest.raises(Conflict, match="holds no such copy") as lost:
        small.copy()
    assert lost.value.code == "RELET-COPIED"
    small.back()
    assert small.copy().ok


def test_a_copy_is_taken_back_as_long_as_nobody_has_worked_with_it(small):
    above = small.copy().tokens_above
    small.back()
    with small.source() as db:
        lease = db.claim("q")
        assert lease.token > above
        lease.complete()
    with pytest.raises(Unavailable) as shut:
        small.target()
    assert shut.value.code == "RELET-COPYING"
    again = small.copy()
    assert again.ok
    with small.target() as db:
        assert db.task("b").state == "done"
        db.submit("q", 3)
    with pytest.raises(Conflict, match="would lose it"):
        small.back()
    with small.target() as db:
        assert db.claim("q").token > again.tokens_above > above


def test_whoever_has_a_copy_open_that_is_taken_back_is_told(small):
    small.copy()
    with small.target() as db:
        small.back()
        with pytest.raises(Unavailable) as shut:
            db.backend.call(Sweep(), patience_ms=1)
        assert shut.value.code == "RELET-COPYING"


def test_only_what_was_copied_can_be_taken_back(small):
    for ask in (small.plan_back, small.back):
        with pytest.raises(Conflict, match="was not copied anywhere"):
            ask()
