"""Workers whose effects call a service in its own process, killed or frozen on the way; and what it has seen."""

import json
import urllib.request

from tests.processes.actor import PROGRAMS

KILLED = -9
WORKER = PROGRAMS / "effect_worker.py"
TURNS_MAX = 8


class Outside:
    """The service, and the workers that call it."""

    def __init__(self, start, steered, folder):
        self._start, self._db, self._folder = start, steered, folder
        self.port = int(start(PROGRAMS / "outside.py").line())

    def counts(self):
        """Calls and changes, for the one key that there is or by kind and key."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/counts") as answer:
            return json.load(answer)

    def calls(self):
        """All calls, and all changes."""
        found = self.counts()
        return sum(found["calls"].values()), sum(found["applied"].values())

    def worker(self, point=""):
        """Start a worker that is to meet its end at a point: of the program, or around a commit (`when:verb[:n]`)."""
        if ":" not in point:
            return self._start(WORKER, self._folder, self.port, environment={"POINT": point})
        fault = point if point.count(":") == 2 else f"{point}:1"
        return self._start(PROGRAMS / "faulty.py", WORKER, self._folder, self.port, environment={"FAULT": fault})

    def killed(self, point):
        """Run a worker into its end."""
        worker = self.worker(point)
        assert worker.wait() == KILLED, worker.errors

    def settle(self, task):
        """Let other workers go on, time passing between them, until the task is done or waits for a person."""
        for _ in range(TURNS_MAX):
            self._db.clock.advance("61s")
            worker = self.worker()
            assert worker.wait() == 0, worker.errors
            found = self._db.task(task.id)
            if found.state not in ("ready", "leased") and not str(found.waiting_for).startswith("look:"):
                return found
        raise AssertionError(f"task {task.id} is {found.state} and waits for {found.waiting_for}: {found.error}")
