"""What tests of the browser agent start from: a shop that outlives every agent, workers, and one purchase each."""

import json
import os
import re
import shutil
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

import relet
from examples.browser_agent.moments import DIES_AT, STOPS_AT
from examples.browser_agent.processes import SHOP, worker
from tests.waiting import eventually

PASSWORD = "correct-horse-battery"
PATIENCE_S = 60.0
TTL = "1500ms"


class ShopDesk:
    """The shop, seen by whoever counts in it and holds requests up."""

    def __init__(self, start):
        self.program = start(*SHOP[1:], environment={"SHOP_PASSWORD": PASSWORD})
        self.url = self.program.line()

    def counts(self, customer):
        return self._get("counts", customer=customer)

    def shut(self, customer, action, when):
        self.tell("shut", customer=customer, action=action, when=when)

    def open(self, customer, action, when):
        self.tell("open", customer=customer, action=action, when=when)

    def holds(self, customer, action, when):
        return self._get("waiting", customer=customer, action=action, when=when)

    def tell(self, what, **said):
        urllib.request.urlopen(f"{self.url}/desk/{what}", urllib.parse.urlencode(said).encode()).close()

    def _get(self, what, **asked):
        with urllib.request.urlopen(f"{self.url}/desk/{what}?{urllib.parse.urlencode(asked)}") as answer:
            return json.load(answer)


class Purchase:
    """One task for one customer, the store that it is in, and its workers."""

    def __init__(self, folder, start, desk, customer):
        self.folder = folder
        self.desk = desk
        self.customer = customer
        self.url = f"sqlite:///{folder / 'work.db'}"
        self.db = relet.connect(self.url)
        self._start = start
        self._places = {}
        goal = {
            "shop": desk.url, "customer": customer, "search": "sea", "title": "Rope, Sail and Sea",
            "address": {"Full name": "Ann Lee", "Street": "Quay 1", "City": "Hull"}, "delivery": "By post",
        }  # fmt: skip
        self.task_id = self.db.submit("browser", {"goal": goal}, kind="buy", ttl=TTL).id

    def worker(self, holder, *, dies_at="", stops_at=""):
        """A worker whose processes, and those of its browser, can be told by the folder of its temporary files."""
        named = {DIES_AT: dies_at, STOPS_AT: stops_at}
        return self._start(
            *worker(holder)[1:],
            environment={
                "RELET_URL": self.url, "SHOP_PASSWORD": PASSWORD, "TMPDIR": self.place(holder),
                **{name: moment for name, moment in named.items() if moment},
            },
        )  # fmt: skip

    def place(self, holder):
        """Its temporary files; outside of the test's own folder, since Chromium's socket needs a short path."""
        if holder not in self._places:
            self._places[holder] = tempfile.mkdtemp(prefix=f"relet-{holder}-")
        return self._places[holder]

    def close(self):
        self.db.close()
        for place in self._places.values():
            nobody_is_left(place)
            shutil.rmtree(place)

    def held_by(self, holder):
        """Wait until it has the task."""
        eventually(lambda: self.task.state == "leased" and self.task.holder == holder, within=PATIENCE_S)

    def result(self):
        try:
            return self.db.result(self.task_id, wait=PATIENCE_S)
        except (TimeoutError, relet.TaskFailed) as wrong:
            raise AssertionError(f"{wrong}; the workers said:\n{self.logs()}") from wrong

    @property
    def task(self):
        return self.db.task(self.task_id)

    @property
    def counts(self):
        return self.desk.counts(self.customer)

    @property
    def progress(self):
        return self.db.checkpoints(self.task_id, "main")[0].value

    def artifact(self, name):
        found = {one.name: one for one in self.db.artifacts(self.task_id)}[name]
        with self.db.open(found.uri) as file:
            return file.read()

    def logs(self):
        return "".join(path.read_text(encoding="utf-8") for path in self.folder.glob("stderr-*"))


def bearing(place):
    """The processes that have this folder in their environment or command line, as their numbers and commands."""
    mark = os.fsencode(place)
    found = []
    for process in Path("/proc").iterdir():
        if not re.fullmatch(r"\d+", process.name):
            continue
        try:
            command = (process / "cmdline").read_bytes()
            if mark in command or mark in (process / "environ").read_bytes():
                found.append((int(process.name), command[:80]))
        except OSError:
            continue  # it has ended meanwhile
    return found


def nobody_is_left(place, within=10):
    eventually(lambda: not bearing(place), within)
    return True
