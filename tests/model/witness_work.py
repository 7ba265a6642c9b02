"""What no sequence of events may show of steps, waits, signals and effects, judged from stored rows alone."""

import json
from collections import Counter

OPEN = ("started", "unknown")


def check(before, after):
    """Every promise of durable work that holds whatever happened between two readings."""
    what_was_kept_stays(before, after)
    decisions_stand(before, after)
    who_waits_holds_nothing(after)
    each_signal_answers_one_wait(before, after)
    receipts_stand(before, after)
    open_effects_are_counted(after)
    a_started_try_has_an_open_lease(after)
    every_try_has_one_event(after)


def what_was_kept_stays(before, after):
    """Steps and evidence are added, and neither changed nor forgotten."""
    for old, new in ((before.steps, after.steps), (before.evidence, after.evidence)):
        assert all(new.get(key) == row for key, row in old.items()), "what was kept has changed"


def decisions_stand(before, after):
    """A question that was answered stays as it is; what was asked never changes."""
    for key, row in before.waits.items():
        new = after.waits[key]
        assert row["decision"] is None or new == row, f"the answer to {row['name']} has changed"
        asked = ("task_seq", "name", "n", "kind", "ask", "digest")
        assert [row[column] for column in asked] == [new[column] for column in asked]


def who_waits_holds_nothing(after):
    """A waiting task has no open lease, and points at one question of its own that nobody has answered."""
    held = {row["task_seq"] for row in after.leases.values() if row["ended"] is None}
    for (seq,), task in after.tasks.items():
        if task["state"] != "waiting":
            assert (task["wait_seq"], task["waiting_for"]) == (None, None)
            continue
        assert seq not in held, f"{task['id']} waits and is held"
        wait = after.waits[task["wait_seq"],]
        assert (wait["task_seq"], wait["name"], wait["decision"]) == (seq, task["waiting_for"], None)
        assert wait["due_wall_ms"] == task["due_wall_ms"]


def each_signal_answers_one_wait(before, after):
    """None is lost, taken twice, or taken back; no wait takes two."""
    for key, row in before.signals.items():
        new = after.signals[key]
        assert new == row or (row["taken_by"] is None and new == {**row, "taken_by": new["taken_by"]})
    takers = Counter(row["taken_by"] for row in after.signals.values() if row["taken_by"] is not None)
    assert all(n == 1 for n in takers.values()), f"a wait took two signals: {takers}"
    assert all(after.waits[seq,]["decision"] == "signal" for seq in takers)


def receipts_stand(before, after):
    """What has succeeded stays so with its receipt; tries only grow; identity never changes."""
    for key, row in before.effects.items():
        new = after.effects[key]
        assert row["state"] != "succeeded" or new == row, f"the receipt of {row['name']} has changed"
        assert new["tries"] - row["tries"] in {0, 1}
        assert (new["id"], new["fingerprint"], new["key"]) == (row["id"], row["fingerprint"], row["key"])


def open_effects_are_counted(after):
    """Each task counts exactly those of its effects whose outcome is not known."""
    counts = Counter(row["task_seq"] for row in after.effects.values() if row["state"] in OPEN)
    for (seq,), task in after.tasks.items():
        assert task["unsettled"] == counts[seq], f"{task['id']} counts {task['unsettled']} and has {counts[seq]}"


def a_started_try_has_an_open_lease(after):
    """As soon as a lease has ended its tries are unknown, and listed so."""
    for row in after.effects.values():
        if row["state"] == "started":
            assert after.leases[row["token"],]["ended"] is None, f"{row['name']} is under way under an ended lease"


def every_try_has_one_event(after):
    """As many starts in the history as tries on record, and a last end that says where the effect stands."""
    told = {}
    for event in after.events.values():
        if event["kind"] in {"effect_started", "effect_ended"}:
            detail = json.loads(event["detail"])
            told.setdefault(detail["effect"], []).append((event["kind"], detail.get("outcome")))
    for row in after.effects.values():
        kinds = told[row["id"]]
        assert [kind for kind, _ in kinds].count("effect_started") == row["tries"]
        assert kinds[-1] == (
            ("effect_started", None) if row["state"] == "started" else ("effect_ended", row["state"])
        )


def answers(before, after):
    """Changes without a lease that one event tells: questions answered while their task waited, signals kept."""
    for key, row in after.waits.items():
        old = before.waits.get(key)
        if row["decision"] is None or (old is not None and old["decision"] is not None):
            continue
        waited = old is None or before.tasks[row["task_seq"],]["wait_seq"] == row["seq"]
        if waited:
            yield row["task_seq"], "answered"
    for key, row in after.signals.items():
        if key not in before.signals and row["taken_by"] is None:
            yield row["task_seq"], "signalled"


def only_doubted(before, after, token):
    """The lapse of a lease has moved no effect but the tries that it had under way, and those into doubt."""
    for key, row in after.effects.items():
        if row != before.effects.get(key):
            old = before.effects[key]
            assert (old["token"], old["state"], row["state"]) == (token, "started", "unknown")
    assert (after.steps, after.waits, after.signals) == (before.steps, before.waits, before.signals)
