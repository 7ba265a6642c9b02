"""One soak: who submits, who answers, and who kills and stops the workers."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import relet
from tests.processes.program import Program, Programs
from tests.soak.ledger import Ledger
from tests.soak.routes import ROUTES

WORKER = Path(__file__).with_name("worker.py")
WORKERS = 4
TROUBLE_EVERY_S = (0.5, 3.0)
AGAIN_S = 0.05
CHARGED = ("effect", "asks")


class Course:
    """Everything that goes on until it is told to end. Worker 0 is never killed: its memory is watched."""

    def __init__(self, folder: Path, rate: float, seed: int, seconds: float, route: str) -> None:
        self._wal = folder / "work.db-wal"
        self._largest_mb = 0.0
        self.db = relet.connect(f"sqlite:///{folder / 'work.db'}", holder="soak")
        """At the store itself, whatever the route."""
        self.ledger = Ledger(folder / "ledger.db")
        self.counts: Counter[str] = Counter()
        self.submitted: dict[str, str] = {}
        """Kinds by ids: what must be done in the end."""
        self.faults: list[str] = []
        self._rate = rate
        self._random = random.Random(seed)
        self._programs = Programs(folder)
        self.route = ROUTES[route](self._programs, self.db, WORKERS, seconds)
        self._workers: list[Program] = [self._start(n) for n in range(WORKERS)]
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=work.__name__)
            for work in (self._submit, self._answer, self._make_trouble, *map(self._troubled, self.route.troubles))
        ]
        for thread in self._threads:
            thread.start()

    def resident_mb(self) -> float:
        """Of the worker that is never killed."""
        pages = int(Path(f"/proc/{self._workers[0].pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def wal_mb(self) -> float:
        """The largest that the log of the store has been since the last look."""
        largest, self._largest_mb = max(self._largest_mb, self._wal_now_mb()), 0.0
        return largest

    def _wal_now_mb(self) -> float:
        return self._wal.stat().st_size / (1 << 20) if self._wal.exists() else 0.0

    def open_tasks(self) -> int:
        return sum(queue.ready + queue.delayed + queue.leased + queue.waiting for queue in self.db.stats().queues)

    def settle(self, within_s: float) -> bool:
        """Submit and trouble no more; is everything done in time."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        until = time.monotonic() + within_s
        while self.open_tasks() and time.monotonic() < until:
            self._decide()
            time.sleep(0.2)
        return not self.open_tasks()

    def close(self) -> None:
        self._ended.set()
        for worker in self._workers:
            worker.send(signal.SIGTERM)
        for worker in self._workers:
            try:
                code = worker.wait()
            except AssertionError as late:
                self.faults.append(f"worker {worker.pid}: {late}")
                continue
            if code:
                self.faults.append(f"worker {worker.pid} ended with {code}: {worker.errors[-500:]}")
        self.faults += self.route.close()
        self._programs.__exit__()
        self.db.close()

    def _troubled(self, trouble):
        """A trouble of the route, with a chance of its own that follows from the seed."""
        chance = random.Random(self._random.random())

        def troubled() -> None:
            trouble(chance, self._ended)

        troubled.__name__ = trouble.__name__
        return troubled

    def _guarded(self, work) -> None:
        try:
            work()
        except Exception as wrong:
            self.faults.append(f"{work.__name__}: {wrong!r}")
            raise

    def _start(self, n: int) -> Program:
        (url, environment), scene = self.route.worker(n), self.route.scene
        words = (WORKER, url, self.ledger.path, f"worker-{n}", scene.ttl_s, scene.slots)
        return self._programs.start(*words, environment=environment)

    def _submit(self) -> None:
        begun, scene = time.monotonic(), self.route.scene
        while not self._ended.is_set():
            due = int((time.monotonic() - begun) * self._rate) + (scene.open_max or 0)
            while len(self.submitted) < due and self._has_room() and not self._ended.is_set():
                (kind,) = self._random.choices(list(scene.kinds), list(scene.kinds.values()))
                ids = [f"s-{len(self.submitted) + n}" for n in range(scene.at_once)]
                self.submitted |= dict.fromkeys(ids, kind)  # before, since they may be done before this is told
                _patiently(lambda: self.route.submitter.submit_many("soak", [None] * len(ids), ids, kind=kind))  # noqa: B023 - called at once
            self._ended.wait(0.05)

    def _has_room(self) -> bool:
        return self.route.scene.open_max is None or self.open_tasks() < self.route.scene.open_max

    def _answer(self) -> None:
        while not self._ended.wait(0.3):
            self._largest_mb = max(self._largest_mb, self._wal_now_mb())
            self._decide()

    def _decide(self) -> None:
        person = self.route.person
        for task in _patiently(lambda: person.tasks(queue="soak", state="waiting", limit=200)):
            if task.waiting_for == "publish":
                try:
                    _patiently(lambda: person.decide(task.id, "publish", "accept"))  # noqa: B023 - called at once
                except relet.Conflict:
                    self.counts["answered before"] += 1

    def _make_trouble(self) -> None:
        chance, scene = random.Random(self._random.random()), self.route.scene
        while not self._ended.wait(chance.uniform(*TROUBLE_EVERY_S)):
            n = chance.randrange(WORKERS)
            if n and chance.random() < 0.5:
                self._workers[n].close()
                self.counts["kills"] += 1
                self._workers[n] = self._start(n)
                continue
            self._workers[n].send(signal.SIGSTOP)
            self.counts["stops"] += 1
            self._ended.wait(chance.uniform(*scene.stopped_ttls) * scene.ttl_s)
            self._workers[n].send(signal.SIGCONT)


def _patiently(verb):
    """Repeat what is safe to repeat: a worker may be stopped while it holds the lock of the file."""
    until = time.monotonic() + 60
    while True:
        try:
            return verb()
        except (relet.Unavailable, relet.OutcomeUnknown):
            if time.monotonic() > until:
                raise
            time.sleep(AGAIN_S)
