"""One task of an example, lived through by real workers: the first is killed at a point, a second takes over."""

import json
import os
import queue
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import relet
from tests.processes.program import Programs
from tests.processes.whole import is_whole
from tests.waiting import eventually

NURSERY = Path(__file__).parent / "programs" / "nursery.py"
KILLED = -9
WITHIN_S = 60
CLOSED = {"done", "failed", "cancelled"}
KINDS = ["asking", "told", "working", "sent"]
"""The kinds of points, as the nursery explains them: the first two are the boundaries, the others lie between."""
AT_ONCE = 8  # lives; nearly all of each is waiting for a lease to lapse


class Nurseries:
    """Programs that fork workers of one app, one worker at a time each."""

    def __init__(self, folder, app, environment):
        self._programs = Programs(folder)
        self._free = queue.SimpleQueue()
        for _ in range(AT_ONCE):
            self._free.put(self._programs.start(NURSERY, app, environment=environment))

    def close(self):
        self._programs.__exit__()

    @contextmanager
    def one(self):
        nursery = self._free.get()
        yield nursery
        self._free.put(nursery)


class Life:
    """What became of one task, and what was called for it."""

    def __init__(self, folder, submit, meanwhile, die=None):
        self.name, self.die = folder.name, die
        self._place, self._calls = folder / "work.db", folder / "calls"
        self._submit, self._meanwhile = submit, meanwhile

    def live(self, nurseries):
        with relet.connect(f"sqlite:///{self._place}", holder="test") as db, nurseries.one() as nursery:
            # Short, so that a death is soon known; whoever is not killed may be held up by a busy machine.
            self._submit(db, id=self.name, ttl="30s" if self.die is None else "1s")
            if self.die is not None:
                self._worker(db, nursery, "victim")
                assert int(nursery.line()) == KILLED, f"{self.die}: {nursery.errors}"
            if db.task(self.name).state not in CLOSED:
                pid = self._worker(db, nursery, "heir")
                os.kill(pid, signal.SIGTERM)
                assert int(nursery.line()) == 0, f"{self.die}: {nursery.errors}"
            assert is_whole(db)
            self._look(db)
        return self

    def _worker(self, db, nursery, holder):
        """Start a worker, and let the world go on beside it until it is dead or the task over; its pid."""
        die = self.die if holder == "victim" else None
        nursery.tell(json.dumps([f"sqlite:///{self._place}", holder, die, str(self._calls)]))
        pid = int(nursery.line())
        eventually(lambda: self._goes_on(db, pid, mortal=die is not None), WITHIN_S)
        return pid

    def _goes_on(self, db, pid, *, mortal):
        task = db.task(self.name)
        if task.state == "waiting":
            self._meanwhile(db, self.name)
        return not is_alive(pid) if mortal else task.state in CLOSED

    def _look(self, db):
        self.task, self.steps = db.task(self.name), db.steps(self.name)
        self.artifacts, self.effects = db.artifacts(self.name), db.effects(task_id=self.name)
        self.events, self.waits = db.history(self.name), db.waits(self.name)
        lines = [json.loads(line) for line in self._calls.read_text(encoding="utf-8").splitlines()]
        self.calls = Counter(tuple(line) for line in lines if isinstance(line, list))
        self.reached = lines[-1] if isinstance(lines[-1], dict) else {}

    @property
    def of_victim(self):
        """The tokens that the killed worker held."""
        return {event.token for event in self.events if (event.kind, event.holder) == ("claimed", "victim")}

    def repeated(self):
        """How often steps were called beyond the calls that are kept."""
        kept = Counter(("step", step.name, step.key) for step in self.steps)
        assert all(self.calls[step] >= times for step, times in kept.items())
        return Counter({step: self.calls[step] - times for step, times in kept.items()}) - Counter()

    def kept_by_victim(self):
        """Steps all of whose results the killed worker had kept before it died."""
        by = {}
        for step in self.steps:
            by.setdefault(("step", step.name, step.key), set()).add(step.token)
        return {step for step, tokens in by.items() if tokens <= self.of_victim}


def is_alive(pid):
    """Is it there still; its nursery takes the dead away."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def every_death(kind, make, nurseries):
    """A life without a death, and one for each point of the kind, killed there; several at once."""
    whole = make(f"{kind}-whole").live(nurseries)
    points = [f"{kind}:{n}" for n in range(1, whole.reached[kind] + 1)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return whole, list(pool.map(lambda die: make(die.replace(":", "-"), die).live(nurseries), points))
