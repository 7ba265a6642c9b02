"""A process beside this one that renews for work which holds the interpreter's lock; one for all of it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from typing import Any, Final

import msgspec

from relet.client.belief import Belief
from relet.client.beside import spawning
from relet.client.beside.board import ENTRIES, Board
from relet.client.redacting import log_named
from relet.core.backend import Backend
from relet.core.border import invalid

log = log_named("relet.keeper")

PROGRAM: Final = "relet.beating"
"""By its name: it opens a store, as nothing in this room may."""
EARLY: Final = 0.8
"""It beats a little before the keeper here would, which beats instead when that process is gone."""
READY: Final = b"r"
AGAIN_S: Final = 1.0
START_S: Final = 30.0
"""For how long whoever wants it waits until it is ready; the keeper's thread renews meanwhile, as well as it can."""
LOOK_EVERY_MS: Final = 500
"""At a process that does not listen: it may have been replaced meanwhile."""
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
        self._kept: dict[int, tuple[int, Belief]] = {}
        self._untold: dict[int, Belief | None] = {}
        """What it is still to be told to keep, or to drop: its pipe was full."""
        self._catching_up = False
        self._closed = False
        self._started = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        # The thread that starts it lives as long as this process: the kernel kills the child of a thread that ends.
        threading.Thread(target=self._run, name="relet-sidecar", daemon=True).start()
        if not self._started.wait(START_S):
            log.warning(
                "the process that renews beside this one is not ready after %d s, and goes on starting", START_S
            )

    def keep(self, belief: Belief) -> None:
        """Renew this lease from there, from now on, unless some other process does so already. Raises `Invalid`."""
        with self._lock:
            if belief.news is not None:
                return
            if not self._free:
                raise invalid("heartbeat", f"from a process serves {ENTRIES} leases of a client; keep others without")
            n = self._free.pop()
            self._kept[id(belief)] = (n, belief)
            belief.news = lambda: self._hear(n, belief)
            self._say("keep", n, belief)
            if belief.silence is not None:
                belief.silence.also(lambda: self._moved(belief))

    def drop(self, belief: Belief) -> None:
        """Renew it no longer."""
        with self._lock:
            if (kept := self._kept.pop(id(belief), None)) is not None:
                belief.news = None
                self._free.insert(0, kept[0])
                self._say("drop", kept[0])

    def close(self) -> None:
        """End the process."""
        with self._lock:
            process, self._closed = self.process, True
            if process is None or process.stdin is None:
                return
            # Said in a word, since a forked child may hold the pipe open; to one that does not listen nothing is.
            # A pipe that is too full for a long word may have room for this short one.
            if self._untold or not self._write(process, {"verb": "end", "n": 0}):
                process.kill()
            process.stdin.close()

    def _hear(self, n: int, belief: Belief) -> None:
        entry = self._board.read(n)
        if entry is None or entry.token != belief.grant.handle.token or entry.refused:
            return
        if entry.sent_ms > belief.trust.renewed_ms:
            belief.trust.confirm(sent_ms=entry.sent_ms, left_ms=entry.left_ms, capped=entry.capped)

    def _moved(self, belief: Belief) -> None:
        with self._lock:
            if (kept := self._kept.get(id(belief))) is not None:
                self._say("moved", kept[0], belief)

    def _say(self, verb: str, n: int, belief: Belief | None = None) -> None:
        if self._closed or self.process is None:
            return
        if self._untold or not self._write(self.process, _words(verb, n, belief)):
            self._untold[n] = belief
            self._catch_up_soon()

    @staticmethod
    def _write(process: subprocess.Popen[bytes], words: dict[str, Any]) -> bool:
        """Whole or, where the pipe is full, not at all, which is False. To one that has died nothing need be said."""
        assert process.stdin is not None, "started with a pipe"
        try:
            return process.stdin.write(msgspec.json.encode(words) + b"\n") is not None
        except (OSError, ValueError):
            return True  # the next one is told all of it

    def _catch_up_soon(self) -> None:
        if not self._catching_up:
            # Without a thread to be had, whatever is said next tries again.
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=self._catch_up, name="relet-sidecar-words", daemon=True).start()
                self._catching_up = True

    def _catch_up(self) -> None:
        """Tell what could not be told, as it is by now, as soon as there is room."""
        while True:
            with self._lock:
                process = self.process
                if self._closed or process is None or process.stdin is None or self._tell_on(process):
                    self._catching_up = False
                    return
                poll = select.poll()
                poll.register(process.stdin, select.POLLOUT)
            poll.poll(LOOK_EVERY_MS)

    def _tell_on(self, process: subprocess.Popen[bytes]) -> bool:
        """Is all told by now."""
        while self._untold:
            n, belief = next(iter(self._untold.items()))
            if not self._write(process, _words("drop" if belief is None else "keep", n, belief)):
                return False
            del self._untold[n]
        return True

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    self._board.close()
                    return
                self.process = self._start()
                self._untold.clear()
                for n, belief in self._kept.values():
                    self._say("keep", n, belief)
            if self.process is None or not self._attend(self.process):
                self._started.set()
                time.sleep(AGAIN_S)  # it cannot start, and the keeper's thread renews as well as it can

    def _start(self) -> subprocess.Popen[bytes] | None:
        try:
            process = spawning.start(
                [sys.executable, "-m", PROGRAM, *self._command], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, bufsize=0, pass_fds=(self._board.descriptor,), start_new_session=True,
            )  # fmt: skip
        except OSError as wrong:
            log.warning("no process that renews beside this one can be started: %s", wrong)
            return None
        assert process.stdin is not None, "started with a pipe"
        # A line is written whole or not at all: one that does not listen must not hold up this one.
        os.set_blocking(process.stdin.fileno(), False)
        return process

    def _attend(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait until it is ready, then until it is gone; False when it never was ready."""
        assert process.stdout is not None and process.stdin is not None, "started with pipes"
        with process.stdout as said:
            is_ready = said.read(1) == READY
        self._started.set()
        process.wait()
        with self._lock, contextlib.suppress(OSError):
            process.stdin.close()
        if not self._closed:
            log.warning("the process that renews beside this one has ended (%s), and is replaced", process.returncode)
        return is_ready or self._closed


def _words(verb: str, n: int, belief: Belief | None) -> dict[str, Any]:
    if verb != "keep" or belief is None:
        return {"verb": verb, "n": n}
    trust, silence = belief.trust, belief.silence
    interval_ms = trust.interval_ms * EARLY
    return {
        "verb": verb, "n": n, "handle": belief.grant.handle, "ttl_ms": belief.grant.ttl_ms,
        "interval_ms": interval_ms,
        "wait_ms": max(0.0, trust.renewed_ms + interval_ms - belief.clock.fast_ms()),
        "silence_ms": None if silence is None else silence.told_most_ms,
        "silent_ms": 0.0 if silence is None else silence.so_far_ms,
    }  # fmt: skip
