"""A program of the tests in a process of its own: told what to do by lines, and read line by line."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests import waiting
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
IMPORTS = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
PATIENCE_S = 2 * waiting.PATIENCE_S


class Program:
    """One process. What it prints arrives as lines; what goes wrong in it is shown by the failure of the test."""

    def __init__(self, script, arguments, stderr, environment, before):
        self._stderr = stderr
        self._lines = queue.SimpleQueue()
        with stderr.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [*before, sys.executable, str(script), *map(str, arguments)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
                env={**os.environ, "PYTHONPATH": IMPORTS, "PYTHONUNBUFFERED": "1", **environment},
            )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self.process.pid

    @property
    def errors(self):
        return self._stderr.read_text(encoding="utf-8")

    def line(self, within=PATIENCE_S):
        """The next line that it prints."""
        try:
            line = self._lines.get(timeout=within)
        except queue.Empty:
            line = None
        assert line is not None, f"no line came; stderr:\n{self.errors}"
        return line

    def value(self, within=PATIENCE_S):
        """The next line, as the JSON value that it is."""
        return json.loads(self.line(within))

    def until(self, wanted, within=PATIENCE_S):
        """Read on to this line; those before it."""
        lines = []
        while (line := self.line(within)) != wanted:
            lines.append(line)
        return lines

    def rest(self):
        """The lines that are left, up to its end."""
        lines = []
        with contextlib.suppress(queue.Empty):
            while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
                lines.append(line)
        return lines

    def tell(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def send(self, number):
        os.kill(self.pid, number)

    def wait(self, within=PATIENCE_S):
        """Its exit code; negative for a signal."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {within} s; stderr:\n{self.errors}") from None

    def close(self):
        for number in (signal.SIGCONT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
        self.process.wait()
        self._reader.join()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def _read(self):
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


class Programs:
    """All programs that one test started."""

    def __init__(self, folder):
        self._folder = folder
        self._started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self._started:
            program.close()

    def start(self, script, *arguments, environment=None, before=()):
        stderr = self._folder / f"stderr-{len(self._started)}"
        program = Program(script, arguments, stderr, environment or {}, before)
        self._started.append(program)
        return program


def living_in_group(group):
    """The processes of a group that are alive; the dead that nobody has reaped are not."""
    rows = subprocess.run(["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True).stdout
    found = []
    for row in rows.splitlines():
        pid, of_group, state = row.split()
        if int(of_group) == group and not state.startswith("Z"):
            found.append(int(pid))
    return found


def gone(group, within=5.0):
    """Is nobody of the group left; given a moment, since the dead are told of late."""
    eventually(lambda: not living_in_group(group), within)
    return True
