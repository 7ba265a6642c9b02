"""A store in memory on a steered clock, asked by bare requests: the state before, an answer, the state after."""

import msgspec

from relet.core.errors import Error
from relet.core.model import Cause
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.inspect import FindTask, History
from relet.core.rules.renew import Renew
from relet.core.rules.submit import NewTask, Submit
from relet.store.sqlite.backend import SqliteBackend
from relet.testing import Clock

TTL_MS = 60_000
# `check_ms` says when to look again, which a claim may put off whatever it answers.
TABLES = {
    "tasks": "*", "checkpoints": "*", "leases": "token, expires_ms, cancelling, ended, end_digest, end_answer",
    "steps": "*", "waits": "*", "signals": "*", "artifacts": "*", "effects": "*", "evidence": "*",
}  # fmt: skip


class Scene:
    """Requests in, answers out; a refusal is answered, not raised."""

    def __init__(self):
        self.clock = Clock()
        self.backend = SqliteBackend("sqlite://", "default", clock=self.clock)

    def ask(self, request):
        try:
            return self.backend.call(request)
        except Error as refused:
            return refused

    def submit(self, *ids, queue="q", kind="k", content=1, **options):
        inputs = msgspec.Raw(msgspec.json.encode(content))
        return self.ask(
            Submit(queue=queue, kind=kind, tasks=[NewTask(id=task, input=inputs) for task in ids], **options)
        )

    def claim(self, *queues, holder="A", **options):
        """The grants; a list, or the refusal."""
        if "task_id" not in options:
            options.setdefault("queues", list(queues) or ["q"])
        return self.ask(Claim(holder=holder, **options))

    def held(self, id="t", *, ttl_ms=TTL_MS, max_hold_ms=None, **options):
        """The grant of a new task that was claimed at once."""
        self.submit(id, max_hold_ms=max_hold_ms, ttl_ms=ttl_ms, **options)
        (grant,) = self.claim(task_id=id)
        return grant

    def renew(self, *grants, ttl_ms=None):
        return self.ask(Renew(handles=[grant.handle for grant in grants], ttl_ms=ttl_ms))

    def complete(self, *grants, result=1, following=None):
        result = msgspec.Raw(msgspec.json.encode(result))
        items = [Completion(handle=grant.handle, result=result) for grant in grants]
        return self.ask(Complete(completions=items, next=following))

    def task(self, id="t"):
        return self.ask(FindTask(task_id=id))

    def events(self, id="t"):
        return self.ask(History(task_id=id))

    def causes(self, id="t"):
        return [Cause(event.kind) for event in self.events(id)]

    def pass_ms(self, ms):
        self.clock.advance(f"{ms}ms")

    def state(self):
        """Everything that a refusal must leave as it was."""
        return {table: self.rows(f"SELECT {what} FROM {table}") for table, what in TABLES.items()}

    def rows(self, sql):
        """Rows of a query, past the rules."""
        return self.backend.store._write.connection().execute(sql).fetchall()
