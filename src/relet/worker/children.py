"""Children of a worker that run handlers apart from it: a group each, which ends when its lease does."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, Final

import msgspec

from relet.client.beside import spawning
from relet.client.beside.board import ENTRIES, Board, Entry
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.client.durable.facts import RunFacts
from relet.client.redacting import log_named
from relet.core import wire
from relet.core.bond import LOCK_VARIABLE, Bond
from relet.core.border import invalid
from relet.core.errors import Error, LeaseLost, Parked
from relet.core.model import LostReason
from relet.worker.app import Handler
from relet.worker.descendants import left_group
from relet.worker.execute import Done, Failed, Outcome, Stopped, Waiting
from relet.worker.line import CUT_OFF, Begin, Drain, Finished, How, Line, Moved, Setup, Stop
from relet.worker.warden import Warden
from relet.worker.whereabouts import where_is

log = log_named("relet.worker")

GRACE_S: Final = 1.0
"""From the order to stop, and TERM to the group, to KILL; less where the lease ends sooner."""
IN_MEMORY: Final = "sqlite://"


class ApartRun(RunFacts):
    """The worker's side of a run in a child."""

    def __init__(self, lease: Lease, child: ChildProcess) -> None:
        self._child = child
        child.take_up(lease)  # before anybody can be told of a loss
        super().__init__(lease)

    @property
    def draining(self) -> bool:
        """As told to the child."""
        return self._is_draining

    @draining.setter
    def draining(self, draining: bool) -> None:
        self._is_draining = draining
        if draining:
            self._child.line.say_beside(Drain())

    def _deliver(self) -> None:
        assert self.stopped is not None, "delivered once it is set"
        self._child.stop(self.lease, self.stopped)


class ChildProcess:
    """One child, which runs one handler after another until one of them has to be stopped."""

    def __init__(self, client: Client, board: Board, n: int, warden: Warden, bond: Bond | None) -> None:
        ours, theirs = socket.socketpair()
        self.line = Line(ours)
        self.n = n
        """Its entry on the board, and no other child's while it lives."""
        self._board, self._warden = board, warden
        passed = [theirs.fileno(), board.descriptor] + ([] if bond is None else [bond.descriptor])
        lock = {} if bond is None else {LOCK_VARIABLE: f"{bond.descriptor}:{bond.lock}"}
        try:
            self.process = spawning.start(
                [sys.executable, "-m", "relet.worker.apart", str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL, pass_fds=passed, start_new_session=True, env={**os.environ, **lock},
            )  # fmt: skip
        except BaseException:
            self.line.close()
            raise
        finally:
            theirs.close()
        warden.watch(self.process.pid)
        self._words = self.line.words()
        self._strays: list[str] = []
        self._lock, self._killing = threading.Lock(), threading.Lock()
        self._lease: Lease | None = None
        """What it runs under, from before the first word of it until after the last: it is stopped for no other."""
        self.spent = False
        """It was told to stop, or has ended: nothing more is run here."""
        self.line.say(Setup(
            url=client.backend.url, tenant=client.backend.tenant, lock=None if bond is None else bond.lock,
            board=board.descriptor, n=n, path=[os.path.abspath(one) for one in sys.path],
            logs=bool(logging.getLogger().handlers),
        ))  # fmt: skip
        try:
            threading.Thread(target=self._await_end, name="relet-child", daemon=True).start()
        except RuntimeError:
            self.close()
            raise

    @property
    def has_ended(self) -> bool:
        """Has it died, though nothing ran or its forks live on."""
        return self.process.returncode is not None or self._ended(os.WNOHANG)

    def take_up(self, lease: Lease) -> None:
        """Work under this lease from now on, until `run` is over."""
        with self._lock:
            self._lease = lease

    def lay_down(self, lease: Lease) -> None:
        """Its attempt is over, or never began: whatever becomes of this lease is no concern of this child's."""
        lease.belief.on_confirmed = None
        with self._lock:
            self._lease = None

    def run(self, handler: Handler, run: ApartRun) -> Outcome:
        """One attempt, to its end or to the end of this child."""
        try:
            return self._run(handler, run)
        finally:
            self.lay_down(run.lease)

    def _run(self, handler: Handler, run: ApartRun) -> Outcome:
        lease, trust = run.lease, run.lease.belief.trust
        grant = msgspec.structs.replace(lease.belief.grant, left_ms=int(trust.until_ms - trust.renewed_ms))
        module, main, name = where_is(handler)
        lease.belief.on_confirmed = self._renewed(lease)
        self.line.say(Begin(
            module=module, main=main, name=name, kind=handler.kind, grant=msgspec.Raw(msgspec.json.encode(grant)),
            sent_ms=trust.renewed_ms, silence_ms=handler.ways.max_silence_ms, draining=run.draining,
        ))  # fmt: skip
        for word in self._words:
            if not isinstance(word, (Moved, Finished)) or word.token != lease.token:
                continue  # what a handler leaves running speaks of its own lease, whatever runs there by now
            if isinstance(word, Finished):
                self.lay_down(lease)
                return self._outcome(lease, word, run.stopped)
            if lease.belief.silence is not None:
                lease.belief.silence.end()
        self.spent = True
        self.kill()
        if run.stopped is not None:
            return Stopped(self._named(run.stopped))
        return Failed({"error": f"{handler.kind}: {_end_of(self.process.returncode)}"})

    def stop(self, lease: Lease, cause: Error) -> None:
        """Tell the handler and TERM the group; KILL what is left of it after the grace. Nothing for another lease."""
        with self._lock:
            if self._lease is not lease:
                return
            self.spent = True
        grace_s = GRACE_S
        if isinstance(cause, LeaseLost) and cause.reason not in (LostReason.CANCELLED, LostReason.RELEASED):
            left_s = (lease.belief.trust.until_ms - lease.belief.clock.fast_ms()) / 1_000
            grace_s = max(0.0, min(GRACE_S, left_s))
        killing = threading.Timer(grace_s, self.kill)
        killing.daemon = True
        try:
            killing.start()
            # Whoever stops it renews the leases of others too, and must not wait for a child that does not listen.
            self.line.say_beside(Stop(token=lease.token, cause=msgspec.Raw(wire.encode(wire.failure(cause)))))
        except RuntimeError:
            self.kill()  # no thread is to be had, so nobody would do it after the grace
            return
        with self._killing:
            if self.process.returncode is None:
                self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the whole group, and say who has left it in time."""
        with self._killing:
            if self.process.returncode is not None:
                return
            self._strays = self._strays or left_group(self.process.pid)
            for stray in self._strays:
                log.warning("a process of a handler's left its group, and goes on: %s", stray)
            self._signal(signal.SIGKILL)
            self._warden.release(self.process.pid)
            self.process.wait()

    def close(self) -> None:
        """End it, and all that its handlers left behind."""
        self.kill()
        self.line.close()

    def _await_end(self) -> None:
        """The end of the line does not tell: every fork of the child holds it open, in its group or out of it."""
        self._ended(0)
        self.kill()
        self.line.hang_up()

    def _ended(self, how: int) -> bool:
        """Not reaped: its group can still be named and killed."""
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | how) is not None
        except ChildProcessError:
            return True  # reaped by whoever killed it

    def _renewed(self, lease: Lease) -> Any:
        def tell(sent_ms: float, left_ms: float, capped: bool) -> None:
            self._board.write(self.n, Entry(lease.token, sent_ms, left_ms, capped, False))

        return tell

    def _outcome(self, lease: Lease, word: Finished, stopped: Error | None) -> Outcome:
        if word.ended is not None:
            lease.belief.end(word.ended)
        if self.spent:
            self.kill()
        if word.how is How.PARKED:
            return Waiting(Parked(lease.task_id, msgspec.json.decode(word.what)))
        if stopped is not None:
            return Stopped(self._named(stopped))
        match word.how:
            case How.DONE:
                return Done(word.what)
            case How.FAILED:
                return Failed(msgspec.json.decode(word.what))
            case How.STOPPED:
                cause = wire.decode_error(word.what)
                assert cause is not None, "an error was encoded"
                lease.belief.take_in(cause)
                return Stopped(cause)

    def _named(self, cause: Error) -> Error:
        if self._strays:
            cause.message += f"; these left its group and go on: {', '.join(self._strays)}"
        return cause

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


class Children:
    """A child for each slot that needs one, kept for the next task."""

    def __init__(self, client: Client, bond: Bond | None, warden: Warden) -> None:
        if client.backend.url == IN_MEMORY:
            raise invalid("isolation", "needs a store that another process can open, such as a file")
        self._client, self._bond = client, bond
        self._board, self._warden = Board.make(), warden
        self._idle: list[ChildProcess] = []
        self._all: list[ChildProcess] = []
        self._free = list(range(ENTRIES))

    def take(self) -> ChildProcess:
        """An idle child, or a fresh one. Called by a thread that lives as long as the worker: they die with it."""
        while self._idle:
            child = self._idle.pop()
            if not (child.spent or child.has_ended):
                return child
            self._end(child)
        child = ChildProcess(self._client, self._board, self._free[-1], self._warden, self._bond)
        self._free.pop()
        self._all.append(child)
        return child

    def give_back(self, child: ChildProcess) -> None:
        """It has run; a spent one is ended."""
        if child.spent:
            self._end(child)
        else:
            self._idle.append(child)

    def _end(self, child: ChildProcess) -> None:
        child.close()
        self._all.remove(child)
        self._free.insert(0, child.n)

    def close(self) -> None:
        """End them all."""
        for child in list(self._all):
            child.close()
        self._board.close()


def _end_of(code: int) -> str:
    if code == CUT_OFF:
        return (
            f"its process exited with {code}: it could not tell the worker how it ended; a handler that closes all "
            "descriptors closes those of its process too; close only what the handler has opened"
        )
    if code >= 0:
        return f"its process exited with {code}"
    try:
        return f"its process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"its process was ended by signal {-code}"
