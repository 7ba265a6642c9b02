"""Where holders are born: a process with relet loaded and no thread, which forks one for each order.

A process of its own for each holder, without the time that loading relet takes. The user's app is loaded in the
holder. There are two nurseries, with different seeds of Python's hashes: holders that follow each other see sets in
another order, as they would on two machines.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from relet.testing.crash.told_to_end import Ending

HASH_SEEDS: Final = 1 << 32
WORD_BYTES: Final = 1 << 16
"""Far more than any message has: paths, numbers."""


class Nursery:
    """The process, as seen by the one that asks for holders; used by one thread at a time."""

    def __init__(self, hash_seed: int, ending: Ending) -> None:
        self._ending = ending
        self._line, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", "relet.testing.crash.nursery", str(theirs.fileno())],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
                env={**os.environ, "PYTHONHASHSEED": str(hash_seed % HASH_SEEDS)},
            )  # fmt: skip
        ending.then(self._hang_up)

    def bear(self, order: Path, words: Path, line: socket.socket) -> int:
        """A new process that works to an order, and prints into a file; its id, which is that of its group."""
        said = {"order": str(order), "words": str(words)}
        with contextlib.suppress(BrokenPipeError):  # that nothing is heard says so
            socket.send_fds(self._line, [json.dumps(said).encode()], [line.fileno()])
        return self._hear()

    def wait(self, pid: int) -> int:
        """The status of a process once it has ended or was stopped, as of `waitpid`."""
        with contextlib.suppress(BrokenPipeError):
            self._line.send(json.dumps({"wait": pid}).encode())
        return self._hear()

    def close(self) -> None:
        """No more holders, and none is left."""
        self._line.close()
        self._process.wait()

    def _hear(self) -> int:
        if heard := self._line.recv(WORD_BYTES):
            return int(heard)
        self._process.wait()
        self._ending.look()
        raise RuntimeError("the process that starts holders has ended; what it said is on stderr")

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):  # closed already
            self._line.shutdown(socket.SHUT_RDWR)


class Nurseries:
    """The two of each thread, opened when it first needs them."""

    def __init__(self, seed: int, ending: Ending) -> None:
        self.seed = seed
        self._ending = ending
        self._mine = threading.local()
        self._all: list[Nursery] = []

    def of(self, number: int) -> Nursery:
        """Where the n-th holder of a run is born. Raises `ToldToEnd` where the test was."""
        self._ending.look()
        pair: dict[int, Nursery] = self._mine.__dict__.setdefault("pair", {})
        which = number % 2
        if which not in pair:
            pair[which] = Nursery(2 * self.seed + which, self._ending)
            self._all.append(pair[which])
        return pair[which]

    def close(self) -> None:
        """End them all."""
        for nursery in self._all:
            nursery.close()


def serve(line: socket.socket) -> dict[str, Any] | None:
    """Answer until nobody asks any more: None. In a newborn process, what it has to do, with its line in it."""
    alive: set[int] = set()
    while True:
        try:
            heard, fds, _, _ = socket.recv_fds(line, WORD_BYTES, 1)
        except ConnectionError:
            heard, fds = b"", []
        if not heard:
            _end(alive)
            return None
        said: dict[str, Any] = json.loads(heard)
        if "wait" in said:
            # One that has ended was told of already, to somebody who was interrupted before they heard.
            status = os.waitpid(said["wait"], os.WUNTRACED)[1] if said["wait"] in alive else int(signal.SIGKILL)
            if not os.WIFSTOPPED(status):
                alive.discard(said["wait"])
            _tell(line, status)
            continue
        pid = os.fork()
        os.setpgid(pid, pid)  # by both, so that its group is there before either goes on
        if pid == 0:
            line.close()
            return {**said, "line": fds[0]}
        alive.add(pid)
        os.close(fds[0])
        _tell(line, pid)


def _end(alive: set[int]) -> None:
    """Whoever asked for them is gone or told to end; a frozen one would stay for ever."""
    for pid in alive:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _tell(line: socket.socket, number: int) -> None:
    # Whoever asked may be gone by now; that nothing more is heard of it says so.
    with contextlib.suppress(ConnectionError):
        line.send(str(number).encode())


def main() -> None:
    """Entry of the process, and of each that it forks."""
    import_module("relet.worker.worker")  # and all that a worker loads when it starts
    from relet.testing.crash.child import work

    said = serve(socket.socket(fileno=int(sys.argv[1])))
    if said is None:
        return
    words = os.open(said["words"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for fd in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(words, fd)
    work(Path(said["order"]), said["line"])


if __name__ == "__main__":
    main()
