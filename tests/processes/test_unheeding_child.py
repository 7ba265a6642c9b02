"""A child that does not read what it is told keeps nobody: not its worker's heartbeats, and not its own end."""

import os
import signal
import threading

import msgspec
import pytest

from relet.client.beside.board import Board
from relet.core.errors import LeaseLost
from relet.worker import children
from relet.worker.children import ApartRun, ChildProcess
from relet.worker.line import Begin
from tests.waiting import eventually

PATIENCE_S = 10


class NoWarden:
    """Nothing is left over here."""

    def watch(self, pid):
        pass

    def release(self, pid):
        pass


@pytest.fixture
def frozen(db):
    """A child that is stopped in the middle of being told what to do, and the lease that it is to work under."""
    board = Board.make()
    child = ChildProcess(db, board, 0, NoWarden(), None)
    os.kill(child.process.pid, signal.SIGSTOP)
    db.submit("work")
    lease = db.claim("work")
    child.take_up(lease)
    begin = Begin(
        module="m", main=None, name="n", kind="k", grant=msgspec.Raw(msgspec.json.encode("x" * (4 << 20))), sent_ms=0,
        silence_ms=None, draining=False,
    )  # fmt: skip
    telling = threading.Thread(target=child.line.say, args=(begin,), daemon=True)
    telling.start()
    eventually(child.line._lock.locked)
    yield child, lease
    child.close()
    telling.join(PATIENCE_S)
    board.close()


def returns(call, *args):
    """Does the call come back, while nobody reads."""
    thread = threading.Thread(target=call, args=args, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return not thread.is_alive()


def test_whoever_stops_it_does_not_wait_for_it(frozen, monkeypatch):
    monkeypatch.setattr(children, "GRACE_S", 1_000)
    child, lease = frozen
    lost = LeaseLost("enough", reason="cancelled", token=lease.token)
    assert returns(child.stop, lease, lost)


def test_whoever_drains_it_does_not_wait_for_it(frozen):
    child, lease = frozen
    run = ApartRun(lease, child)
    assert returns(setattr, run, "draining", True)


def test_it_is_killed_once_its_grace_is_over(frozen):
    child, lease = frozen
    child.stop(lease, LeaseLost("enough", reason="cancelled", token=lease.token))
    eventually(lambda: child.has_ended, within=PATIENCE_S)
