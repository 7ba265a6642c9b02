"""One task of an example, lived through by real workers: the first is killed at a point, a second takes over."""

import json
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import relet
from tests.processes.program import Programs
from tests.processes.whole import is_whole
from tests.waiting import eventually

MORTAL = Path(__file__).parent / "programs" / "mortal_worker.py"
KILLED = -9
CLOSED = {"done", "failed", "cancelled"}
KINDS = ["asking", "told", "working", "sent"]
"""The kinds of points, as the mortal worker explains them: the first two are the boundaries, the others lie between."""
AT_ONCE = 8  # lives; nearly all of each is waiting for a lease to lapse


class Life:
    """What became of one task, and what was called for it."""

    def __init__(self, name, folder, app, submit, environment, meanwhile, die=None):
        self.name, self.folder, self.app, self.die = name, folder, app, die
        self._submit, self._meanwhile = submit, meanwhile
        self._environment = {**environment, "CALLS": str(folder / "calls")}
        self.reached = {}

    def live(self):
        url = f"sqlite:///{self.folder / 'work.db'}"
        with relet.connect(url, holder="test") as db, Programs(self.folder) as programs:
            self._submit(db, id=self.name, ttl="1s")

            def worker(holder, **more):
                return programs.start(MORTAL, url, self.app, holder, environment={**self._environment, **more})

            if self.die is not None:
                victim = worker("victim", DIE=self.die)
                eventually(lambda: self._goes_on(db, victim.process.poll() is not None), within=30)
                assert victim.wait() == KILLED, f"{self.die}: {victim.errors}"
            if db.task(self.name).state not in CLOSED:
                heir = worker("heir")
                eventually(lambda: self._goes_on(db, heir.process.poll() is not None), within=30)
                heir.send(signal.SIGTERM)
                assert heir.wait() == 0, f"{self.die}: {heir.errors}"
                self.reached = heir.value()
            assert is_whole(db)
            self._look(db)
        return self

    def _goes_on(self, db, ended):
        """Let the world go on beside the workers; true once the worker has ended, or the task when none is to die."""
        task = db.task(self.name)
        if task.state == "waiting":
            self._meanwhile(db, self.name)
        return ended or (task.state in CLOSED and (self.die is None or task.holder == "heir"))

    def _look(self, db):
        self.task, self.steps = db.task(self.name), db.steps(self.name)
        self.artifacts, self.effects = db.artifacts(self.name), db.effects(task_id=self.name)
        self.events = db.history(self.name)
        self.calls = Counter(tuple(json.loads(line)) for line in (self.folder / "calls").read_text().splitlines())

    @property
    def of_victim(self):
        """The tokens that the killed worker held."""
        return {event.token for event in self.events if (event.kind, event.holder) == ("claimed", "victim")}

    def repeated(self):
        """Steps that were called more often than they are kept."""
        kept = Counter(("step", step.name, step.key) for step in self.steps)
        assert all(self.calls[step] >= times for step, times in kept.items())
        return Counter({step: self.calls[step] - times for step, times in kept.items()}) - Counter()

    def kept_by_victim(self):
        """Calls all of whose results the killed worker had kept before it died."""
        by = {}
        for step in self.steps:
            by.setdefault(("step", step.name, step.key), set()).add(step.token)
        return {step for step, tokens in by.items() if tokens <= self.of_victim}


def every_death(kind, make):
    """A life without a death, and one for each point of the kind, killed there; several at once."""
    whole = make("whole", None).live()
    points = [f"{kind}:{n}" for n in range(1, whole.reached[kind] + 1)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        lives = list(pool.map(lambda die: make(die.replace(":", "-"), die).live(), points))
    return whole, lives
