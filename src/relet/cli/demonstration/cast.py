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
from typing import Any, Self

Line = dict[str, Any]
PATIENCE_S = 10.0


class Actor:
    """A process that works on the queue; its lines are read in the background."""

    def __init__(self, url: str, queue_name: str, holder: str, ttl: float, pace: float) -> None:
        self.holder = holder
        self._lines: queue.Queue[Line | None] = queue.Queue()
        command = [
            sys.executable,
            "-m",
            "relet.cli.demonstration.actor",
            url,
            queue_name,
            holder,
            str(ttl),
            str(pace),
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
        self.pid = self._process.pid
        threading.Thread(target=self._read, daemon=True).start()

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
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None, "opened with a pipe"
        for text in self._process.stdout:
            self._lines.put(json.loads(text))
        self._lines.put(None)
