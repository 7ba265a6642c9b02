"""Copies of a store in a folder, on a steered clock; and all that its clients can read, to compare."""

from contextlib import contextmanager

import msgspec
import psycopg

from relet.artifacts.bringing import bring
from relet.artifacts.opening import folder_beside, open_artifacts
from relet.core import limits
from relet.core.errors import Error
from relet.core.rules.audit import ListAudit
from relet.core.rules.inspect import Changes
from relet.core.rules.keys import ListKeys
from relet.store.copying import Brought, back, copy, plan
from relet.store.postgres.copy_in import arriving
from relet.store.sqlite.copy_out import leaving
from relet.testing.stores import open_store

TO = "copied"
"""The folder, in that of the source, beside which a copy has its artifacts."""


def nothing(*_):
    """Nobody wants to hear how far it has come."""


class Move:
    """From a folder into a database, by one clock."""

    def __init__(self, folder, clock, url):
        self.folder, self.clock, self.url = folder, clock, url
        (folder / TO).mkdir(exist_ok=True)

    def copy(self, told=nothing, clock=None):
        """By another clock of the database, if need be."""
        with self._ends(clock) as (here, there):
            return copy(here, there, self._bring, told)

    def plan(self):
        with self._ends(looks=True) as (here, there):
            return plan(here, there, lambda uris: self._bring(uris, dry_run=True))

    def back(self):
        with self._ends() as ends:
            return back(*ends)

    def plan_back(self):
        with self._ends(looks=True) as ends:
            return back(*ends, dry_run=True)

    def source(self, tenant="default", **options):
        """A client of the file."""
        return open_store(self.folder, self.clock, tenant=tenant, **options)

    def target(self, tenant="default", **options):
        """A client of the database."""
        return open_store(self.folder / TO, self.clock, tenant=tenant, url=self.url, **options)

    @contextmanager
    def _ends(self, clock=None, **options):
        file = f"sqlite:///{self.folder / 'relet.db'}"
        with (
            arriving(self.url, "relet", clock=clock or self.clock) as there,
            leaving(file, clock=self.clock, state=self.folder / "state", **options) as here,
        ):
            yield here, there

    def _bring(self, uris, **options):
        place, to = (open_artifacts(folder_beside(where / "relet.db")) for where in (self.folder, self.folder / TO))
        return Brought(*bring(uris, [place], to, nothing, **options))


def with_two_tasks(move):
    """The first of which was done under token 1."""
    with move.source(holder="A") as db:
        db.submit_many("q", [1, 2], ["a", "b"])
        db.claim("q").complete("ok")
    return move


def readings(db):
    """What every verb that reads says of a tenant, by the verb."""
    found = {"tasks": pages(db), "stats": db.stats(), "queues": db.queues(), "waits": db.waits()}
    found["rejections"] = db.rejections(limit=limits.PAGE_ITEMS_MAX)
    found["effects"], found["advice"] = db.effects(limit=limits.PAGE_ITEMS_MAX), db.advise()
    found["changes"] = events(db)
    found["keys"] = db.backend.operate(ListKeys(revoked=True))
    found["audit"] = db.backend.operate(ListAudit())
    for task in found["tasks"]:
        found[task.id] = {
            "task": db.task(task.id), "history": db.history(task.id), "steps": db.steps(task.id),
            "checkpoints": db.checkpoints(task.id), "waits": db.waits(task.id), "artifacts": db.artifacts(task.id),
            "bytes": [read(db, artifact.uri) for artifact in db.artifacts(task.id)], "result": result(db, task.id),
        }  # fmt: skip
    return found


def pages(db):
    found = []
    while page := db.tasks(limit=100, after=found[-1].id if found else None):
        found += page
    return found


def events(db):
    found, after = [], 0
    while page := db.backend.call(Changes(after=after)).events:
        found += page
        after = page[-1].seq
    return [msgspec.structs.astuple(event) for event in found]


def read(db, uri):
    with db.open(uri) as file:
        return file.read()


def result(db, task_id):
    try:
        return db.result(task_id)
    except (Error, TimeoutError) as wrong:
        return type(wrong), str(wrong)


def compare(move):
    """Copy a store in which no lease lives any more to where another one was; whatever is read of it is the same."""
    with move.source() as db, move.source("elsewhere") as other:
        while db.sweep():
            pass
        store_id, before = db.backend.store.identity.store_id, [readings(db), readings(other)]
    take_place(move.url, store_id)
    done = move.copy()
    assert done.ok, done.findings
    with move.target() as db, move.target("elsewhere") as other:
        assert db.verify().findings == []
        assert [readings(db), readings(other)] == before


def take_place(url, store_id):
    """As if a copy of this store had been cut there."""
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('relet.meta')").fetchone()[0]:
            connection.execute("UPDATE relet.meta SET store_id = %s, min_reader = 1000000000", [store_id])
