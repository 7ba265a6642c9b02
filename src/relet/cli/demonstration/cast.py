"""The processes of the demonstration, as the narrator sees them."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from types import TracebackType
from typing import Any, NamedTuple, Self

Line = dict[str, Any]
PATIENCE_S = 10.0


class Place(NamedTuple):
    """A store, as other processes find it."""

    url: str
    schema: str


class Actor:
    """A process that works on the queue once it is told to; its lines are read in the background."""

    def __init__(self, part: str, place: Place, queue_name: str, holder: str, *arguments: str) -> None:
        self.holder = holder
        self._lines: queue.Queue[Line | None] = queue.Queue()
        command = [sys.executable, "-m", f"relet.cli.demonstration.{part}", *place, queue_name, holder, *arguments]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def hear(self, event: str, *, since: float = 0, **wanted: Any) -> Line:
        """The next line of this kind said after `since`; others before it are passed over. Raises TimeoutError."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_S)
            except queue.Empty:
                raise TimeoutError(f"{self.holder} did not say {event!r} within {PATIENCE_S:g} s") from None
            if line is None:
                raise TimeoutError(f"{self.holder} ended before it said {event!r}")
            if (
                line["event"] == event
                and line["at"] > since
                and all(line[key] == value for key, value in wanted.items())
            ):
                return line

    def begin(self) -> None:
        """Its cue."""
        assert self._process.stdin is not None, "opened with a pipe"
        self._process.stdin.write("begin\n")
        self._process.stdin.flush()

    def kill(self) -> int:
        """End the process at once, wherever it stands; the exit code, negative for the signal."""
        self._process.kill()
        return self._process.wait()

    def freeze(self) -> None:
        """Stop the process where it stands; neither it nor its heartbeat knows."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on as if nothing had been."""
        os.kill(self.pid, signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._reading.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None, "opened with a pipe"
            stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None, "opened with a pipe"
        for text in self._process.stdout:
            self._lines.put(json.loads(text))
        self._lines.put(None)
