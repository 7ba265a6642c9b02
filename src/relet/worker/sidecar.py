"""A process beside the worker that renews for handlers which hold the interpreter's lock; one for all of them."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from typing import Any, Final

import msgspec

from relet.client.belief import Belief
from relet.core.backend import Backend
from relet.core.border import invalid
from relet.worker.board import ENTRIES, Board

log = logging.getLogger("relet.worker")

EARLY: Final = 0.8
"""It beats a little before the worker's own keeper would, which beats instead when this process is gone."""
READY: Final = b"r"
AGAIN_S: Final = 1.0
IN_MEMORY: Final = "sqlite://"


class Sidecar:
    """The process, replaced when it dies. What it hears is taken in before a lease is judged by the clock."""

    def __init__(self, backend: Backend, lock: str | None) -> None:
        if backend.url == IN_MEMORY:
            raise invalid("heartbeat", "from a process needs a store that another process can open, such as a file")
        self._command = [backend.url, backend.tenant, "", lock or "", str(os.getpid())]
        self._lock = threading.Lock()
        self._board = Board.make()
        self._command[2] = str(self._board.descriptor)
        self._free = list(range(ENTRIES))
        self._kept: dict[int, tuple[Belief, int]] = {}
        self._closed = False
        self._started = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        # The thread that starts it lives as long as the worker: the kernel kills the child of a thread that ends.
        threading.Thread(target=self._run, name="relet-sidecar", daemon=True).start()
        self._started.wait()

    def keep(self, belief: Belief) -> None:
        """Renew this lease from there, from now on."""
        with self._lock:
            n = self._free.pop()
            self._kept[n] = (belief, belief.grant.handle.token)
            belief.news = lambda: self._hear(n, belief)
            self._say_keep(n, belief)
            if belief.silence is not None:
                belief.silence.also(lambda: self._moved(n))

    def drop(self, belief: Belief) -> None:
        """Renew it no longer."""
        with self._lock:
            for n in [n for n, (kept, _) in self._kept.items() if kept is belief]:
                belief.news = None
                del self._kept[n]
                self._free.insert(0, n)
                self._say(verb="drop", n=n)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._closed = True
            process = self.process
        assert process is not None and process.stdin is not None, "started when this was made"
        process.stdin.close()

    def _hear(self, n: int, belief: Belief) -> None:
        entry = self._board.read(n)
        if entry is None or entry.token != belief.grant.handle.token or entry.refused:
            return
        if entry.sent_ms > belief.trust.renewed_ms:
            belief.trust.confirm(sent_ms=entry.sent_ms, left_ms=entry.left_ms, capped=entry.capped)

    def _moved(self, n: int) -> None:
        with self._lock:
            if n in self._kept:
                self._say(verb="moved", n=n)

    def _say_keep(self, n: int, belief: Belief) -> None:
        trust, silence = belief.trust, belief.silence
        interval_ms = trust.interval_ms * EARLY
        self._say(
            verb="keep", n=n, handle=belief.grant.handle, ttl_ms=belief.grant.ttl_ms, interval_ms=interval_ms,
            wait_ms=max(0.0, trust.renewed_ms + interval_ms - belief.clock.fast_ms()),
            silence_ms=None if silence is None else silence.most_ms,
            silent_ms=0.0 if silence is None else silence.so_far_ms,
        )  # fmt: skip

    def _say(self, **said: Any) -> None:
        assert self.process is not None and self.process.stdin is not None, "started when this was made"
        with contextlib.suppress(OSError):  # it has died: the next one is told all of it
            self.process.stdin.write(msgspec.json.encode(said) + b"\n")

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    return
                self.process = subprocess.Popen(  # noqa: S603 - this very interpreter, and a module of this package
                    [sys.executable, "-m", "relet.worker.beating", *self._command], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, bufsize=0, pass_fds=(self._board.descriptor,), start_new_session=True,
                )  # fmt: skip
                assert self.process.stdin is not None, "started with a pipe"
                # A line is written whole or not at all: one that does not listen must not hold up the worker.
                os.set_blocking(self.process.stdin.fileno(), False)
                for n, (belief, _) in self._kept.items():
                    self._say_keep(n, belief)
            self._attend(self.process)

    def _attend(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until it is ready, then until it is gone."""
        assert process.stdout is not None, "started with a pipe"
        with process.stdout as said:
            is_ready = said.read(1) == READY
        self._started.set()
        process.wait()
        if self._closed:
            return
        log.warning("the heartbeat beside the worker has ended (%s); it is started anew", process.returncode)
        if not is_ready:
            time.sleep(AGAIN_S)  # it cannot start, and the worker's own thread renews as well as it can
