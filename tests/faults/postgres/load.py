"""Work that goes on while a server is treated badly: tasks come in at a rate, processes do them and write it down.

with Load(url, start, tmp_path) as load:
    load.flow()
    load.struck()            # and whatever is done to the server
    load.flow()
    story = load.finish()
"""

import json
import os
import threading
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import relet
from tests.waiting import eventually

CREW = Path(__file__).parent / "programs" / "crew.py"
QUEUE, HELD = "load", "held"
HELD_TTL_S = 30
"""Longer than anything stands still; a heartbeat comes each third of it."""
WORKERS = 8
RATE = int(os.environ.get("RELET_TEST_RATE", "200"))
EVERY_S = 0.1
FLOW = 100
"""Completions that show that work goes on."""
BACKLOG_MAX = 300
"""A machine that does less than what comes in gets no more than it can still do in the end."""


@dataclass
class Line:
    """One thing that a worker was told by the store."""

    what: str
    task: str
    token: int
    attempt: int
    sent: float
    answered: float


@dataclass
class Story:
    """All that was acknowledged, to anybody."""

    submitted: list
    lines: list
    troubles: list
    struck: float | None
    held: str
    """How the work ended that one holder had in hand all the time, under one token and a heartbeat."""

    def of(self, what):
        return [line for line in self.lines if line.what == what]

    @property
    def recovered_s(self):
        """The longest time from the blow on in which nobody completed anything; a blow may take a moment to tell."""
        at = sorted(line.answered for line in self.of("completed") if line.answered > self.struck)
        return max(later - sooner for sooner, later in zip([self.struck, *at], at, strict=False))

    @property
    def rate(self):
        """Completions a second before the blow."""
        at = [line.answered for line in self.of("completed") if line.answered < self.struck]
        return len(at) / max(0.001, max(at) - min(at)) if at else 0.0

    def told(self):
        """In one line, for who reads the log of a run."""
        kinds = {trouble[1].partition(":")[0] for trouble in self.troubles}
        return (
            f"recovered in {self.recovered_s:.2f} s; {len(self.submitted)} tasks, {self.rate:.0f} a second before, "
            f"{len(self.troubles)} errors told {sorted(kinds) or ''}"
        )


class Load:
    """`workers` processes, and a thread of the test that submits."""

    def __init__(self, url, start, folder, *, workers=WORKERS, rate=RATE):
        self._start, self._folder, self._workers = start, folder, workers
        self._url = url
        self._batch = max(1, round(rate * EVERY_S))
        self._over = threading.Event()
        self._submitted, self._troubles = [], []
        self._struck = None

    def __enter__(self):
        self.db = relet.connect(self._url)
        self.db.submit(HELD, 1)
        self._held = self.db.claim(HELD, ttl=HELD_TTL_S)
        self._beat = self._held.keep_quietly()
        self._beat.__enter__()
        self._crew = self._start(CREW, self._url, self._folder, self._workers)
        for _ in range(self._workers):
            assert self._crew.line() == "up"
        self._submitter = threading.Thread(target=self._submit, daemon=True)
        self._submitter.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._submitter.join(30)
        self._beat.__exit__(None, None, None)
        self.db.close()

    def struck(self):
        """The blow falls now."""
        self._struck = time.monotonic()

    def flow(self, within=60, completions=FLOW):
        """Wait until work goes on: so many tasks that were claimed from now on are completed."""
        begun = time.monotonic()
        lines = Tail(self._files)

        def seen():
            lines.read()
            return sum(1 for line in lines.found if line.what == "completed" and line.sent > begun) >= completions

        eventually(seen, within)

    def finish(self, within=90):
        """Everything that was submitted is done, and everybody has ended in order; what there was to tell."""
        self._over.set()
        self._submitter.join(30)
        assert not self._submitter.is_alive(), "who submits got no answer"
        eventually(self._is_done, within)
        self._crew.tell("end")
        assert self._crew.value(within=60) == [0] * self._workers, self._crew.errors
        assert self._crew.errors == ""
        lines = Tail(self._files)
        lines.read()
        return Story(
            self._submitted, lines.found, self._troubles + lines.troubles, self._struck, self._end_of_held()
        )  # fmt: skip

    def _end_of_held(self):
        try:
            self._held.complete(1)
        except relet.LeaseLost as lost:
            return str(lost)
        return "completed"

    @property
    def _files(self):
        return [self._folder / f"worker-{number}" for number in range(self._workers)]

    def _is_done(self):
        try:
            queues = self.db.stats(QUEUE).queues
        except (relet.Unavailable, relet.OutcomeUnknown):
            return False
        return bool(queues) and queues[0].ready == queues[0].leased == 0

    def _submit(self):
        numbers, lines = count(), Tail(self._files)
        while not self._over.is_set():
            lines.read()
            if len(self._submitted) - sum(line.what == "completed" for line in lines.found) > BACKLOG_MAX:
                self._over.wait(EVERY_S)
                continue
            ids = [f"t-{next(numbers)}" for _ in range(self._batch)]
            began = time.monotonic()
            while not self._is_taken(ids):
                if self._over.is_set():
                    return
            self._over.wait(max(0.0, EVERY_S - (time.monotonic() - began)))

    def _is_taken(self, ids):
        began = time.monotonic()
        try:
            self.db.submit_many(QUEUE, ids, ids=ids)
        except (relet.Unavailable, relet.OutcomeUnknown) as wrong:
            self._troubles.append(("submit", f"{type(wrong).__name__}: {wrong}", time.monotonic() - began))
            return False
        self._submitted += ids
        return True


class Tail:
    """What is new in growing files."""

    def __init__(self, files):
        self._read = dict.fromkeys(files, 0)
        self.found, self.troubles = [], []

    def read(self):
        for path, at in self._read.items():
            with path.open("rb") as file:
                file.seek(at)
                whole = file.read().rpartition(b"\n")[0]
            self._read[path] = at + len(whole) + bool(whole)
            for text in whole.splitlines():
                what, *rest = json.loads(text)
                if what == "trouble":
                    verb, told, _, sent, answered = rest
                    self.troubles.append((verb, told, answered - sent))
                else:
                    self.found.append(Line(what, *rest))
