"""Somebody else holds the write lock: waiting is bounded, nothing is half done, an interrupt leaves nothing open."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import apsw
import pytest

from relet.core.errors import Unavailable
from relet.core.rules.claim import Claim
from relet.core.rules.renew import Renew
from relet.core.rules.submit import NewTask, Submit
from relet.store.sqlite import lane as lanes
from tests.core.talk import RAW
from tests.store.inside import ask, contents, lane, path_of
from tests.waiting import Gate

PATIENCE_MS = 60
NOTICEABLE_S = 5
CLAIM = Claim(holder="A", queues=["q"])
SUBMIT = Submit(queue="q", kind="q", tasks=[NewTask(id="new", input=RAW)])


@contextmanager
def write_lock(folder):
    """Another program within a transaction of its own."""
    connection = apsw.Connection(str(path_of(folder)))
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.close()


@pytest.mark.parametrize("request_", [CLAIM, SUBMIT], ids=["claim", "submit"])
def test_a_store_that_stays_locked_is_unavailable_after_a_bounded_wait(db, tmp_path, request_):
    db.submit("q", 1, id="t")
    before, began = contents(tmp_path), time.monotonic()
    with write_lock(tmp_path), pytest.raises(Unavailable, match="stayed locked by another process") as busy:
        db.backend.call(request_, patience_ms=PATIENCE_MS)
    assert PATIENCE_MS / 1_000 <= time.monotonic() - began < NOTICEABLE_S
    assert (busy.value.code, busy.value.retryable) == ("RELET-BUSY", True)
    assert contents(tmp_path) == before
    assert db.claim("q").task_id == "t", "nothing of it stays in the way"


def test_whoever_waited_for_long_is_told_who_has_the_lock(db, tmp_path, monkeypatch):
    monkeypatch.setattr(lanes, "NAMED_FROM_S", PATIENCE_MS / 1_000)
    db.submit("q", 1, id="t")
    with (
        write_lock(tmp_path),
        pytest.raises(Unavailable, match=rf"locked by process {os.getpid()} \(.*its program") as no,
    ):
        db.backend.call(CLAIM, patience_ms=PATIENCE_MS)
    assert no.value.detail["pids"] == [os.getpid()]
    monkeypatch.setattr(lanes, "NAMED_FROM_S", PATIENCE_MS)
    with write_lock(tmp_path), pytest.raises(Unavailable, match="locked by another process") as no:
        db.backend.call(CLAIM, patience_ms=PATIENCE_MS)
    assert no.value.detail["pids"] == []


def test_a_heartbeat_waits_no_longer_than_it_was_told(db, tmp_path):
    db.submit("q", 1)
    handle = db.claim("q").belief.grant.handle
    with write_lock(tmp_path), pytest.raises(Unavailable) as busy:
        db.backend.call(Renew(handles=[handle]), patience_ms=PATIENCE_MS)
    assert busy.value.code == "RELET-BUSY"
    assert db.backend.call(Renew(handles=[handle]))[0].left_ms == 60_000


def test_without_a_word_the_wait_has_a_bound_of_the_engine(db, tmp_path, monkeypatch):
    monkeypatch.setattr(lanes, "PATIENCE_MS", PATIENCE_MS)
    with write_lock(tmp_path), pytest.raises(Unavailable) as busy:
        db.submit("q", 1)
    assert busy.value.code == "RELET-BUSY"


def test_reading_goes_on_while_somebody_writes(db, tmp_path):
    db.submit("q", 1, id="t")
    with write_lock(tmp_path) as other:
        other.execute("UPDATE tasks SET priority = 7")
        assert db.task("t").priority == 0
        other.execute("COMMIT")
    assert db.task("t").priority == 7


def test_a_lock_that_is_released_in_time_is_waited_out(db, tmp_path, monkeypatch):
    db.submit("q", 1, id="t")
    pauses = []
    with write_lock(tmp_path) as other:

        def pause(seconds):
            pauses.append(seconds)
            if len(pauses) == 5:
                other.execute("COMMIT")

        monkeypatch.setattr(lanes, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
        assert db.claim("q").task_id == "t"
    assert len(pauses) == 5
    assert all(0 < seconds <= lanes.PAUSE_S_MAX for seconds in pauses)


def test_the_clock_is_read_after_the_wait(db, tmp_path, monkeypatch):
    """Judged by a time before it waited, this lease would be renewed from the dead."""
    db.submit("q", 1, ttl=60)
    handle = db.claim("q").belief.grant.handle
    with write_lock(tmp_path) as other:

        def pause(_seconds):
            db.clock.advance(60)
            other.execute("COMMIT")

        monkeypatch.setattr(lanes, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
        (refused,) = db.backend.call(Renew(handles=[handle]))
    assert refused.reason == "expired"


def test_a_lane_that_another_thread_uses_is_waited_for_no_longer_either(db):
    inside, done = Gate(), Gate()

    def work(_connection):
        inside.set()
        done.pass_through()

    thread = threading.Thread(target=lane(db).transact, args=("BEGIN IMMEDIATE", work))
    thread.start()
    try:
        inside.pass_through()
        with pytest.raises(Unavailable) as busy:
            db.backend.call(SUBMIT, patience_ms=PATIENCE_MS)
        assert busy.value.code == "RELET-BUSY"
    finally:
        done.set()
        thread.join()
    assert db.backend.call(SUBMIT)[0].created


def test_the_feed_of_refusals_is_given_up_when_the_store_stays_busy(db, tmp_path, monkeypatch):
    """It never alters an answer: the refusal is told all the same."""
    from relet.store.sqlite import feed

    monkeypatch.setattr(feed, "PATIENCE_MS", PATIENCE_MS)
    db.submit("q", 1)
    lease = db.claim("q")
    lease.complete()
    real = lanes.commit

    def then_busy(connection):
        real(connection)
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(lanes, "commit", real)

    other = apsw.Connection(str(path_of(tmp_path)))
    monkeypatch.setattr(lanes, "commit", then_busy)
    with pytest.raises(Exception, match="ended by its own holder") as refused:
        lease.release()
    assert refused.value.reason == "closed"
    other.close()
    assert ask(tmp_path, "SELECT * FROM rejections") == []


class Interrupted(KeyboardInterrupt):
    """A signal at the worst moment."""


def interrupt_before_work(monkeypatch):
    real = lanes._begin

    def begin(*arguments):
        real(*arguments)
        monkeypatch.setattr(lanes, "_begin", real)
        raise Interrupted

    monkeypatch.setattr(lanes, "_begin", begin)


def interrupt_before_commit(monkeypatch):
    real = lanes.commit

    def commit(_connection):
        monkeypatch.setattr(lanes, "commit", real)
        raise Interrupted

    monkeypatch.setattr(lanes, "commit", commit)


def interrupt_before_commit_and_in_rollback(monkeypatch):
    interrupt_before_commit(monkeypatch)
    real = lanes.rollback

    def rollback(connection):
        if connection.in_transaction:
            monkeypatch.setattr(lanes, "rollback", real)
            raise Interrupted
        real(connection)

    monkeypatch.setattr(lanes, "rollback", rollback)


def interrupt_with_the_lock_held_and_nothing_begun(monkeypatch):
    real = lanes.Lane.connection

    def connection(lane):
        monkeypatch.setattr(lanes.Lane, "connection", real)
        raise Interrupted

    monkeypatch.setattr(lanes.Lane, "connection", connection)


MOMENTS = [
    interrupt_with_the_lock_held_and_nothing_begun,
    interrupt_before_work,
    interrupt_before_commit,
    interrupt_before_commit_and_in_rollback,
]


@pytest.mark.parametrize("interrupt", MOMENTS)
def test_an_interrupt_at_any_moment_leaves_a_store_that_goes_on(db, tmp_path, monkeypatch, interrupt):
    db.submit("q", 1, id="t")
    before = contents(tmp_path)
    interrupt(monkeypatch)
    with pytest.raises(Interrupted):
        db.claim("q")
    assert contents(tmp_path) == before
    # By another thread: to the one that was interrupted a lock that it left behind would be open.
    with ThreadPoolExecutor(1) as another:
        assert another.submit(db.backend.call, CLAIM, patience_ms=PATIENCE_MS).result()[0].handle.task_id == "t"


def test_an_interrupt_while_it_waits_for_the_store_leaves_no_lock_behind(db, tmp_path, monkeypatch):
    db.submit("q", 1, id="t")

    def pause(_seconds):
        raise Interrupted

    with write_lock(tmp_path), monkeypatch.context() as interrupted:
        interrupted.setattr(lanes, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
        with pytest.raises(Interrupted):
            db.claim("q")
    with ThreadPoolExecutor(1) as another:
        assert another.submit(db.backend.call, CLAIM, patience_ms=PATIENCE_MS).result()[0].handle.task_id == "t"
    with write_lock(tmp_path):
        pass  # and keeps nobody else out


def test_a_signal_handler_that_asks_from_within_a_transaction_is_refused_and_ends_nothing(db):
    heard = []

    def work(connection):
        with pytest.raises(Unavailable, match="within a transaction of the store already") as refused:
            db.submit("q", "from the handler")
        heard.append(refused.value.code)
        connection.execute("UPDATE meta SET lapse_count = 77")

    lane(db).transact("BEGIN IMMEDIATE", work)
    assert heard == ["RELET-BUSY"]
    assert lane(db).connection().execute("SELECT lapse_count FROM meta").fetchall() == [(77,)]
    assert db.tasks() == []


def test_what_a_transaction_raises_undoes_all_of_it(db, tmp_path):
    before = contents(tmp_path)

    def work(connection):
        connection.execute("UPDATE meta SET n = 99")
        raise ValueError("changed its mind")

    with pytest.raises(ValueError, match="changed its mind"):
        lane(db).transact("BEGIN IMMEDIATE", work)
    assert contents(tmp_path) == before


def test_an_error_of_the_engine_undoes_all_of_it_and_is_told_in_our_words(db, tmp_path):
    before = contents(tmp_path)

    def work(connection):
        connection.execute("UPDATE meta SET n = 99")
        connection.execute("SELECT * FROM nowhere")

    with pytest.raises(Unavailable, match="no such table: nowhere") as failed:
        lane(db).transact("BEGIN IMMEDIATE", work)
    assert failed.value.code == "RELET-IO"
    assert contents(tmp_path) == before
