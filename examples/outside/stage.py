"""One command for a whole example: starts services and workers, tells what happens, kills a worker when asked to."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import relet

COMMAND = "from relet.cli.entry import main; main()"
LOOK_EVERY_S = 0.05
CLOSED = {"done", "failed", "cancelled"}


class Stage:
    """Processes in one folder, all of which end with the block; the store is a file in it, unless `url` is given."""

    def __init__(self, folder: Path, app: str, url: str | None = None) -> None:
        self.url = url or f"sqlite:///{folder / 'work.db'}"
        self._folder = folder
        self._app = app
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._processes: list[subprocess.Popen[str]] = []
        self.worker: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in filter(None, (process.stdin, process.stdout)):
                with contextlib.suppress(OSError):
                    pipe.close()

    def serve(self, name: str, module: str, *arguments: str) -> str:
        """Start a service; its address, which workers find in the environment under this name."""
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], env=self._environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._processes.append(process)
        assert process.stdout is not None, "opened with a pipe"
        address = process.stdout.readline().strip()
        if not address:
            raise SystemExit(f"{module} did not start (exit {process.wait()})")
        self._environment[name] = address
        return address

    def work(self, holder: str) -> None:
        """Start `relet worker` under a name; what it logs is in the folder."""
        with self._log(holder).open("w", encoding="utf-8") as log:
            self.worker = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "worker", self._app, "--holder", holder, "--url", self.url],
                env=self._environment, text=True, stdout=log, stderr=log,
            )  # fmt: skip
        self._processes.append(self.worker)

    def kill(self) -> None:
        """SIGKILL: nothing is saved, released or said."""
        assert self.worker is not None, "started"
        self.worker.send_signal(signal.SIGKILL)
        self.worker.wait()

    def is_working(self, holder: str) -> None:
        """Ends the program, with the worker's last words, when the worker has ended by itself."""
        if self.worker is not None and self.worker.poll() is not None:
            raise SystemExit(f"worker {holder} ended:\n{self._log(holder).read_text(encoding='utf-8')}")

    def _log(self, holder: str) -> Path:
        return self._folder / f"worker-{holder}.log"


@contextlib.contextmanager
def folder_for(given: str | None) -> Iterator[Path]:
    """The folder that was asked for, else one that is removed at the end."""
    if given is None:
        with tempfile.TemporaryDirectory(prefix="relet-example-") as made:
            yield Path(made)
    else:
        Path(given).mkdir(parents=True, exist_ok=True)
        yield Path(given).resolve()


def follow(
    stage: Stage, db: relet.Client, task_id: str, kill_at: int | None = None,
    on_question: Callable[[relet.Wait], None] | None = None,
) -> relet.Task:  # fmt: skip
    """Tell the task's story until it is over. After `kill_at` lines of its work A is killed, and B started."""
    holder, told, written = "A", 0, 0
    stage.work(holder)
    while True:
        task = db.task(task_id)  # read before its history, so that the last line is told too
        for event in db.history(task_id)[told:]:
            told += 1
            say(event)
            written += event.token is not None and event.kind != "claimed"
            if event.kind == "parked" and on_question is not None:
                ask_about(db, task_id, on_question)
        if task.state in CLOSED:
            if kill_at is not None and holder == "A":
                print(f"  -- nobody was killed: all was over after {written} lines of work --")
            return task
        if kill_at is not None and written >= kill_at and holder == "A":
            stage.kill()
            print(f"  -- SIGKILL: worker A is gone, after {written} lines of work; worker B starts --")
            holder = "B"
            stage.work(holder)
        stage.is_working(holder)
        time.sleep(LOOK_EVERY_S)


def ask_about(db: relet.Client, task_id: str, on_question: Callable[[relet.Wait], None]) -> None:
    """Put the open question of a task, if it has one."""
    for wait in db.waits(task_id):
        if wait.open and wait.kind == "approval":
            on_question(wait)


def say(event: relet.Event) -> None:
    """One line for one event."""
    who = f"{event.holder or '-':>3}" + (f" (token {event.token})" if event.token is not None else "")
    shown = {key: value for key, value in event.detail.items() if key in {
        "name", "slot", "attempt", "outcome", "decision", "by", "cost", "repeated", "reason",
    } and value is not None}  # fmt: skip
    print(f"{who:16} {event.kind:14} " + " ".join(f"{key}={value}" for key, value in shown.items()))


def saved(db: relet.Client, task_id: str) -> str:
    """What the last takeover did not have to do again."""
    grants = [event.detail for event in db.history(task_id) if event.kind == "claimed"]
    if len(grants) < 2 or "saved" not in grants[-1]:
        return "nothing was resumed"
    kept: dict[str, Any] = grants[-1]["saved"]
    return f"the last holder skipped {kept['steps']} steps: {kept['took_ms']} ms and {kept['cost']:.0f} tokens saved"
