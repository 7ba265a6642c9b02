"""The program of a worker's child: runs handlers that are to be apart from the worker, one at a time.

Started fresh by exec. It is killed with its whole group when it does not stop; it ends when the worker is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import queue
import runpy
import signal
import socket
import sys
import threading
from functools import cache
from types import ModuleType
from typing import Any

import msgspec

from relet.client.awaiting import AsyncClient
from relet.client.belief import Belief
from relet.client.beside.board import Board
from relet.client.beside.parent import Parent
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.client.durable.run import AsyncRun, Run
from relet.client.lease import LostInBlock
from relet.client.silence import Silence
from relet.connect import connect
from relet.core import border, wire
from relet.core.errors import LeaseLost
from relet.core.model import End, Grant
from relet.core.redaction import SECRETS
from relet.worker.app import Handler
from relet.worker.execute import Done, Failed, Outcome, Stopped, Unsettled, Waiting, run_awaiting, run_blocking
from relet.worker.line import CUT_OFF, Begin, Drain, Finished, How, Line, Moved, Setup, Stop
from relet.worker.main import log_to_stderr
from relet.worker.whereabouts import found_in

MAIN = "__relet_child__"
"""The name that a worker's own script has here, so that what it does under `__main__` is not done again."""


class Apart:
    """One child; its main thread runs handlers, another one listens."""

    def __init__(self, line: Line, setup: Setup) -> None:
        self._line = line
        self._client: Client = connect(setup.url, setup.tenant)
        if setup.lock is not None:
            self._client.backend.vouch(setup.lock)
        self._board, self._n = Board(setup.board), setup.n
        self._run: Run | AsyncRun | None = None
        self._stop: tuple[int, LeaseLost] | None = None

    def run(self, begin: Begin) -> Finished:
        """One attempt."""
        grant = msgspec.json.decode(begin.grant, type=Grant)
        belief = Belief(grant, begin.sent_ms, self._client.clock)
        belief.news = lambda: self._hear(belief)
        if begin.silence_ms is not None:
            belief.silence = Silence(self._client.clock, begin.silence_ms, lambda: self._moved(belief))
        lease = Lease(self._client, belief)
        try:
            handler = _handler(begin)
        except Exception as wrong:  # noqa: BLE001 - whatever an import raises is told
            said = f"{begin.kind}: cannot be imported in its own process: {LostInBlock.failure(wrong)['error']}"
            return _failed(lease.token, {"error": said}, None)
        self._moved(belief)  # what was imported until now is none of the handler's silence
        if handler.binding.is_async:
            outcome = asyncio.run(self._await(handler, lease, begin.draining))
        else:
            run = Run(lease)
            self._begin(run, begin.draining)
            outcome = run_blocking(handler, run)
        self._run = None
        return _told(lease.token, outcome, belief.ended)

    def stop(self, token: int, cause: LeaseLost) -> None:
        """Tell the run of this token, and no other."""
        self._stop = (token, cause)
        run = self._run
        if run is not None and run.token == token:
            run.stop(cause)

    def drain(self) -> None:
        """Let the run know."""
        if (run := self._run) is not None:
            run.draining = True

    async def _await(self, handler: Handler, lease: Lease, draining: bool) -> Outcome:
        run = AsyncRun(lease, AsyncClient(self._client), asyncio.get_running_loop())
        self._begin(run, draining)
        task = asyncio.current_task()
        assert task is not None, "coroutines run in tasks"
        return await run_awaiting(handler, run, task)

    def _begin(self, run: Run | AsyncRun, draining: bool) -> None:
        run.draining = draining
        self._run = run
        if self._stop is not None and self._stop[0] == run.token:
            run.stop(self._stop[1])  # it came before there was anything to stop

    def _moved(self, belief: Belief) -> None:
        self._line.say(Moved(token=belief.grant.handle.token))

    def _hear(self, belief: Belief) -> None:
        entry = self._board.read(self._n)
        if entry is not None and entry.token == belief.grant.handle.token:
            belief.trust.confirm(sent_ms=entry.sent_ms, left_ms=entry.left_ms, capped=entry.capped)


def _told(token: int, outcome: Outcome, ended: End | None) -> Finished:
    match outcome:
        case Done(result):
            return Finished(token=token, how=How.DONE, what=result, ended=ended)
        case Failed(arguments):
            return _failed(token, arguments, ended)
        case Stopped(cause):
            cause.message = border.text(cause.message)
            return Finished(
                token=token, how=How.STOPPED, what=msgspec.Raw(wire.encode(wire.failure(cause))), ended=ended
            )
        case Waiting(parked):
            return Finished(token=token, how=How.PARKED, what=msgspec.Raw(wire.encode(parked.name)), ended=ended)
        case Unsettled():
            raise AssertionError("decided by whoever hands in")


def _failed(token: int, arguments: dict[str, Any], ended: End | None) -> Finished:
    # Cleaned before it is JSON: a file's name that is no UTF-8 has none.
    arguments = {**arguments, "error": border.text(arguments["error"])}
    return Finished(token=token, how=How.FAILED, what=msgspec.Raw(wire.encode(arguments)), ended=ended)


@cache
def _main_of(path: str) -> Any:
    module = ModuleType(MAIN)
    vars(module).update(runpy.run_path(path, run_name=MAIN))
    sys.modules[MAIN] = module  # whoever reads the annotations of a class, or pickles one, looks for its module
    return vars(module)


def _handler(begin: Begin) -> Handler:
    names = _main_of(begin.main) if begin.main is not None else vars(importlib.import_module(begin.module))
    if (found := found_in(names, begin.name, begin.kind)) is None:
        raise LookupError(f"{begin.name} of {begin.module} is no handler of {begin.kind!r}")
    return found


def main() -> None:
    """Run what the worker says until it is gone."""
    Parent(int(sys.argv[2]))
    signal.signal(signal.SIGTERM, lambda *_: None)  # goes to the whole group; here the run is told by a word
    line = Line(socket.socket(fileno=int(sys.argv[1])))
    todo: queue.SimpleQueue[Begin] = queue.SimpleQueue()
    words = line.words()
    setup = next(words)
    assert isinstance(setup, Setup), "the first word"
    sys.path[:] = setup.path
    SECRETS.watch(os.environ)
    if setup.logs:
        log_to_stderr()
    apart = Apart(line, setup)
    threading.Thread(target=_listen, args=(words, apart, todo), daemon=True).start()
    while True:
        finished = apart.run(todo.get())
        if line.is_forked:
            # The handler has forked, and this is its fork, which has come out of it too: it answers for nobody.
            _leave(0 if finished.how is How.DONE else 1)
        if not line.say(finished):
            _leave(CUT_OFF)  # nobody would hear the end of this or of any other attempt; they hear of an exit


def _leave(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _listen(words: Any, apart: Apart, todo: queue.SimpleQueue[Begin]) -> None:
    for word in words:
        match word:
            case Begin():
                todo.put(word)
            case Stop(token=token, cause=raw):
                cause = wire.decode_error(raw)
                assert isinstance(cause, LeaseLost), "a run is stopped by the end of its lease"
                apart.stop(token, cause)
            case Drain():
                apart.drain()
    os._exit(0)


if __name__ == "__main__":
    main()
