"""The groups of a worker's children do not outlive it, not even when it is killed without a word."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Final

from relet.client.beside import spawning
from relet.client.redacting import log_named

log = log_named("relet.worker")

MARK: Final = "RELET_WARDED_BY"
"""In the environment of what a worker starts that shares its group with others."""
AGAIN_S: Final = 1.0
PROGRAM: Final = Path(__file__).with_name("group_killer.py")


class Warden:
    """A process beside this one that kills the groups it was told of, once this process is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[int, str] = {}
        self._shared: str | None = None
        self._closed = False
        self._process = self._start()
        threading.Thread(target=self._replace, name="relet-warden", daemon=True).start()

    @property
    def pid(self) -> int:
        """The process beside."""
        return self._process.pid

    def watch(self, group: int) -> None:
        """Kill the group should this process die."""
        with self._lock:
            self._groups[group] = "+"
            self._tell(f"+{group}\n")

    def watch_own(self) -> None:
        """Kill what is left of this process's own group once it is dead: all of it if it leads one.

        Of a group that it shares, a shell's or a test runner's, only what it has started itself is killed.
        """
        with self._lock:
            if os.getpgrp() == os.getpid():
                self._groups[os.getpid()] = "="
                self._tell(f"={os.getpid()}\n")
                return
            os.environ[MARK] = uuid.uuid4().hex
            self._shared = f"~{os.getpgrp()} {MARK}={os.environ[MARK]}\n"
            self._tell(self._shared)

    def release(self, group: int) -> None:
        """The group is dead. Said before its leader is waited for: until then its number means nobody else."""
        with self._lock:
            self._groups.pop(group, None)
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """End it; there is nothing left to kill."""
        with self._lock:
            self._tell(".\n")  # a forked child may hold the pipe open
            self._closed = True
            if self._shared is not None:
                os.environ.pop(MARK, None)
            assert self._process.stdin is not None, "started with a pipe"
            self._process.stdin.close()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None, "started with a pipe"
        with contextlib.suppress(BrokenPipeError):  # it was killed: the next one hears of all that is there
            self._process.stdin.write(line.encode())

    def _replace(self) -> None:
        while True:
            self._process.wait()
            with self._lock:
                if self._closed:
                    return
                is_started = self._start_again()
            if not is_started:
                time.sleep(AGAIN_S)

    def _start_again(self) -> bool:
        assert self._process.stdin is not None, "started with a pipe"
        try:
            process = self._start()
        except OSError as wrong:
            log.warning("no process that ends what a killed worker leaves can be started; again soon: %s", wrong)
            return False
        self._process.stdin.close()
        self._process = process
        for group, sign in self._groups.items():
            self._tell(f"{sign}{group}\n")
        if self._shared is not None:
            self._tell(self._shared)
        return True

    @staticmethod
    def _start() -> subprocess.Popen[bytes]:
        return spawning.start(
            [sys.executable, "-I", "-S", str(PROGRAM), str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, bufsize=0,
            start_new_session=True,
        )  # fmt: skip
