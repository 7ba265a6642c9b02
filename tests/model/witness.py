"""What no sequence of events may show, judged from stored rows and from nothing that the rules know.

A witness compares two readings of the tables. It knows no verb: whatever happened between the readings, a task has
at most one live lease, tokens only grow, done is final, and each change has exactly one event.
"""

from collections import Counter
from typing import NamedTuple

import apsw

from tests.model import witness_work

KEYS = {
    "tasks": ("seq",), "leases": ("token",), "checkpoints": ("task_seq", "name", "version"), "events": ("seq",),
    "steps": ("task_seq", "name", "slot"), "waits": ("seq",), "signals": ("seq",), "effects": ("seq",),
    "evidence": ("rowid",),
}  # fmt: skip
BEATS = {"expires_ms", "beat_ms", "beat_wall_ms", "check_ms"}
"""Columns of an open lease that move without an event."""
PROMOTED = {"delayed", "due_ms", "due_wall_ms"}
"""Columns of a ready task that move when its time has come; it reads as ready all along, hence no event."""
COUNTED = {"unsettled", "last_event"}
"""Columns that follow the effects, whose events are judged apart."""
OF_EFFECTS = {"effect_started", "effect_ended"}
EVENTS_OF_AN_END = {
    "completed": {"completed"},
    "failed": {"retried", "failed", "cancelled"},
    "released": {"released", "cancelled"},
    "lapsed": {"lapsed", "failed", "cancelled"},
    "parked": {"parked"},
}


class Reading(NamedTuple):
    """The rows of a store at one moment, by key."""

    tasks: dict
    leases: dict
    checkpoints: dict
    events: dict
    steps: dict
    waits: dict
    signals: dict
    effects: dict
    evidence: dict

    def task(self, name):
        """The row of a task by its id."""
        return next(row for row in self.tasks.values() if row["id"] == name)

    def open_effects(self, name):
        """Effects of a task whose outcome is not known."""
        seq = self.task(name)["seq"]
        return [row for row in self.effects.values() if row["task_seq"] == seq and row["state"] in OPEN]


OPEN = {"started", "unknown"}


class Witness:
    """Reads the tables of one store through a connection of its own."""

    def __init__(self, path):
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)

    def close(self):
        self._connection.close()

    def read(self):
        """All rows, in one snapshot."""
        with self._connection:
            return Reading(*(dict(self._rows(table, key)) for table, key in KEYS.items()))

    def _rows(self, table, key):
        what = "rowid, *" if key == ("rowid",) else "*"
        cursor = self._connection.execute(f"SELECT {what} FROM {table}")
        for values in cursor:
            row = dict(zip((column[0] for column in cursor.get_description()), values, strict=True))
            yield tuple(row[column] for column in key), row


def check(before, after, store_ms):
    """Every promise that holds whatever happened between two readings; `store_ms` is the store's time now."""
    one_live_lease(after, store_ms)
    tokens_grow(before, after)
    ends_stay(before, after)
    done_is_final(before, after)
    every_change_has_one_event(before, after)
    witness_work.check(before, after)


def one_live_lease(after, store_ms):
    """At most one lease of a task is open, live or not, and then the task says `leased` and names its token."""
    open_leases = [row for row in after.leases.values() if row["ended"] is None]
    counts = Counter(row["task_seq"] for row in open_leases)
    assert all(n == 1 for n in counts.values()), f"two open leases of one task: {counts}"
    leased = {seq: row["token"] for (seq,), row in after.tasks.items() if row["state"] == "leased"}
    assert leased == {row["task_seq"]: row["token"] for row in open_leases}
    live_keys = [row["exclusive"] for row in open_leases if row["exclusive"] and row["expires_ms"] > store_ms]
    assert len(live_keys) == len(set(live_keys)), f"an exclusive key is held twice: {live_keys}"


def tokens_grow(before, after):
    """A new grant has a larger token than every grant before it, whatever the task; no grant is ever forgotten."""
    known, now = set(before.leases), set(after.leases)
    assert known <= now, f"grants were forgotten: {known - now}"
    assert all(token > max(known, default=(0,)) for token in now - known), f"{now - known} after {max(known)}"
    for (seq,), task in after.tasks.items():
        old = before.tasks.get((seq,))
        assert old is None or task["token"] >= old["token"], f"the token of task {task['id']} went back"


def ends_stay(before, after):
    """A lease that has ended stays as it is: nothing revives it, and no second end replaces the first."""
    for token, row in before.leases.items():
        assert row["ended"] is None or after.leases[token] == row, f"lease {token} changed after its end"


def done_is_final(before, after):
    """A task that is done is never touched again."""
    for seq, row in before.tasks.items():
        assert row["state"] != "done" or after.tasks[seq] == row, f"task {row['id']} changed after it was done"


def every_change_has_one_event(before, after):
    """Each change that rows show is told by one event, and each event tells a change that rows show."""
    told = [row for seq, row in after.events.items() if seq not in before.events and row["kind"] not in OF_EFFECTS]
    assert all(after.events.get(seq) == row for seq, row in before.events.items()), "the past was rewritten"
    for task_seq, token, kinds in changes(before, after):
        matching = [
            row for row in told if (row["task_seq"], row["token"]) == (task_seq, token) and row["kind"] in kinds
        ]
        assert matching, f"no event tells of {sorted(kinds)} of task {task_seq}, token {token}"
        told.remove(matching[0])
    assert not told, f"events tell of what did not happen: {told}"


def changes(before, after):
    """The changes between two readings: of which task, under which token, and the kinds of event that tell it."""
    moved = set()
    for key, row in after.leases.items():
        old = before.leases.get(key)
        if old is None:
            moved.add(row["task_seq"])
            yield row["task_seq"], row["token"], {"claimed"}
            old = {**row, "ended": None, "cancelling": 0}
        if row["ended"] != old["ended"]:
            moved.add(row["task_seq"])
            yield row["task_seq"], row["token"], EVENTS_OF_AN_END[row["ended"]]
        elif row["cancelling"] != old["cancelling"]:
            moved.add(row["task_seq"])
            yield row["task_seq"], row["token"], {"cancel_requested"}
        else:
            assert differing(old, row) <= BEATS, f"lease {key} changed in silence: {differing(old, row)}"
    for kind, old_rows, rows in (
        ("saved", before.checkpoints, after.checkpoints),
        ("stepped", before.steps, after.steps),
    ):
        for key, row in rows.items():
            if key not in old_rows:
                moved.add(row["task_seq"])
                yield row["task_seq"], row["token"], {kind}
    for seq, kind in witness_work.answers(before, after):
        moved.add(seq)
        yield seq, None, {kind}
    yield from changes_without_a_lease(before, after, moved)


def changes_without_a_lease(before, after, moved):
    """Changes of tasks that nobody held: made, cancelled, requeued, given up at their deadline."""
    for (seq,), row in after.tasks.items():
        old = before.tasks.get((seq,))
        match None if old is None else old["state"], row["state"]:
            case None, _:
                yield seq, None, {"submitted"}
            case (("failed" | "cancelled"), ("ready" | "leased")):
                yield seq, None, {"requeued"}
            case "ready", ("cancelled" | "failed") if seq not in moved:
                yield seq, None, {row["state"]}
            case "waiting", "cancelled":
                yield seq, None, {"cancelled"}
            case _ if seq not in moved:
                assert differing(old, row) <= PROMOTED | COUNTED, (
                    f"task {row['id']} changed in silence: {differing(old, row)}"
                )


def unchanged(before, after):
    """Two readings are the same."""
    assert after == before, "a refusal changed something"


def unchanged_but_for_a_lapse(before, after, token):
    """Two readings differ in nothing, or in this: the expiry of the lease was written down."""
    ended = [key for key, row in after.leases.items() if row != before.leases.get(key)]
    if not ended:
        unchanged(before, after)
        return
    assert ended == [(token,)], f"a refusal changed the leases {ended}, not only {token}"
    lease = after.leases[token,]
    assert differing(before.leases[token,], lease) <= {"ended", "ended_ms", "ended_wall_ms"}
    assert lease["ended"] == "lapsed"
    assert after.checkpoints == before.checkpoints
    witness_work.only_doubted(before, after, token)
    touched = [key for key, row in after.tasks.items() if row != before.tasks.get(key)]
    assert touched == [(lease["task_seq"],)]
    assert after.tasks[touched[0]]["result"] == before.tasks[touched[0]]["result"]


def differing(old, row):
    """The columns in which two rows differ."""
    return {column for column in row if row[column] != old[column]}


def at_most_a_timeout(before, after, _token):
    """A refused answer has written down, at most, that the time for it had run out."""
    decided = [row for key, row in after.waits.items() if row != before.waits.get(key)]
    if not decided:
        unchanged(before, after)
        return
    assert [(row["decision"], row["decided_by"]) for row in decided] == [("timeout", "timeout")]
    same = ("leases", "checkpoints", "steps", "signals", "effects", "evidence")
    assert all(getattr(after, table) == getattr(before, table) for table in same)


def but_for_evidence(before, after, token):
    """As `unchanged_but_for_a_lapse`, and what was said too late was kept beside it."""
    unchanged_but_for_a_lapse(before, after._replace(evidence=before.evidence), token)


def effects_unmoved_but_doubted(before, after):
    """Evidence moved no effect; the lapse that was seen on the way may have put tries into doubt."""
    for key, row in after.effects.items():
        assert row["state"] in {before.effects[key]["state"], "unknown"}
