"""verify, for every SQL engine: does all hold that must hold of a store, row by row, as it stands at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

from relet.core import limits
from relet.core.audit import FIRST, broken
from relet.core.errors import Unavailable
from relet.core.invariants import Link, Whole, Written, judge
from relet.core.keys_tx import AuditRow
from relet.core.upkeep import Finding, Verified, VerifiedLog
from relet.store.rows import event_of, lease_of, task_of
from relet.store.work_rows import effect_of, wait_of

A = TypeVar("A")
Row = tuple[Any, ...]
Query = Callable[[str], Iterator[Any]]
"""The rows of a named statement, one by one; several are read in turns."""
Exists = Callable[[str], bool]
"""Are the bytes of this address in their place."""

VERIFY_STATEMENTS: Final = frozenset([
    "every_task", "every_lease", "every_event", "every_wait", "every_effect", "every_write", "without_input",
    "totals_off", "takeovers_off", "pruned_off", "second_lives", "beyond_the_mark", "every_digest",
    "every_audit", "audit_ends",
])  # fmt: skip


def verified(place: str, found: Callable[[Looked], Iterator[Finding]]) -> Verified:
    """What was found, up to the limit, and how much was looked at."""
    looked = Looked()
    findings: list[Finding] = []
    more = False
    for finding in found(looked):
        if more := len(findings) == limits.FINDINGS_MAX:
            break
        findings.append(finding)
    return Verified(
        place=place, tasks=looked.tasks, leases=looked.leases, events=looked.events, artifacts=looked.artifacts,
        findings=findings, more=more,
    )  # fmt: skip


def findings(query: Query, looked: Looked, exists: Exists | None) -> Iterator[Finding]:
    """What does not hold of the rows; with `exists` of the stored bytes too."""
    yield from _of_tasks(query, looked)
    yield from _of_the_store(query)
    yield from broken((AuditRow(*row) for row in query("every_audit")), _audit_end(query))
    if exists is not None:
        yield from _of_bytes(query, looked, exists)


def verified_log(place: str, query: Query) -> VerifiedLog:
    """The chain of the audit log alone."""
    lines, (last, digest) = 0, _audit_end(query)

    def counted() -> Iterator[AuditRow]:
        nonlocal lines
        for row in query("every_audit"):
            lines += 1
            yield AuditRow(*row)

    found = list(islice(broken(counted(), (last, digest)), limits.FINDINGS_MAX + 1))
    return VerifiedLog(
        place=place, lines=lines, last=last, digest=digest, findings=found[: limits.FINDINGS_MAX],
        more=len(found) > limits.FINDINGS_MAX,
    )  # fmt: skip


def _audit_end(query: Query) -> tuple[int, str]:
    row = next(query("audit_ends"), (0, FIRST))
    return row[0], row[1]


class Looked:
    """How much was looked at."""

    tasks = leases = events = artifacts = 0


class _Rows:
    """Rows of a table in the order of their tasks, handed out task by task."""

    def __init__(self, query: Query, table: str) -> None:
        self.table = table
        self._rows: Iterator[Any] = query(f"every_{table}")
        self._next: Row | None = next(self._rows, None)
        self._unread: list[Finding] = []

    def of(self, task_seq: int, made: Callable[[Row], A]) -> list[A]:
        """Those of a task; tasks are asked for in their order."""
        found = []
        while self._next is not None and self._next[0] == task_seq:
            try:
                found.append(made(self._next[1:]))
            except Unavailable as wrong:
                self._unread.append(Finding(rule="rows-are-read", row=self._name(), text=str(wrong.__cause__)))
            self._next = next(self._rows, None)
        return found

    def odd(self, task_seq: float) -> Iterator[Finding]:
        """What could not be read so far, and what belongs to no task before this one."""
        while self._next is not None and self._next[0] < task_seq:
            yield Finding(rule="belongs-to-a-task", row=self._name(), text=f"no task {self._next[0]} is there")
            self._next = next(self._rows, None)
        yield from self._unread
        self._unread.clear()

    def _name(self) -> str:
        assert self._next is not None, "asked for a row that is there"
        return f"{self.table} {' '.join(str(value) for value in self._next[1:4])}"


def _of_tasks(query: Query, looked: Looked) -> Iterator[Finding]:
    tables = [_Rows(query, table) for table in ("lease", "event", "wait", "effect", "write")]
    leases, events, waits, effects, written = tables
    for row in query("every_task"):
        try:
            task = task_of(row)
        except Unavailable as wrong:
            told = f"it has no meaning: {wrong.__cause__}"
            yield Finding(rule="rows-are-read", row=f"task {row[2]}", text=told)
            for table in tables:
                table.of(row[0], lambda row: row)
            continue
        whole = Whole(
            task=task, leases=leases.of(task.seq, lease_of), chain=events.of(task.seq, _link),
            waits=waits.of(task.seq, wait_of), effects=effects.of(task.seq, effect_of),
            written=written.of(task.seq, lambda row: Written(*row)),
        )  # fmt: skip
        looked.tasks += 1
        looked.leases += len(whole.leases)
        looked.events += len(whole.chain)
        odd = [finding for table in tables for finding in table.odd(task.seq)]
        # Of a task whose rows cannot all be read nothing more can be said.
        yield from odd or judge(whole)
    for table in tables:
        yield from table.odd(float("inf"))


def _link(row: Row) -> Link:
    return Link(event_of(row[1:]), row[0])


def _of_the_store(query: Query) -> Iterator[Finding]:
    for (task_id,) in query("without_input"):
        yield Finding(rule="belongs-to-a-task", row=f"task {task_id}", text="it has no input")
    for rule, unit in (
        ("totals_off", "tasks submitted"),
        ("takeovers_off", "takeovers"),
        ("pruned_off", "tombstones"),
    ):
        for tenant, queue, said, n in query(rule):
            text = f"it counts {said} {unit}, and {n} are there"
            yield Finding(rule="totals", row=f"queue {queue} of {tenant}", text=text)
    for (task_id,) in query("second_lives"):
        yield Finding(rule="one-life", row=f"task {task_id}", text="a task of this id was pruned before it")
    for token, epoch, mark in query("beyond_the_mark"):
        yield Finding(
            rule="tokens-below-their-mark", row=f"lease {token}",
            text=f"it is beyond {(epoch << limits.TOKEN_BITS) + mark}, up to which tokens may be given out",
        )  # fmt: skip


def _of_bytes(query: Query, looked: Looked, exists: Exists) -> Iterator[Finding]:
    for uri in named_bytes(query):
        looked.artifacts += 1
        if not exists(uri):
            yield Finding(rule="bytes-are-there", row=uri, text="it is named, and not stored")


def named_bytes(query: Query) -> Iterator[str]:
    """The address of all that a store names and another place has."""
    for (digest,) in query("every_digest"):
        yield f"artifact:{digest}"
