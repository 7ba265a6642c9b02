"""Effects on a service in its own process, while workers are killed, frozen and hung up on; the service counts."""

import contextlib
import random
import subprocess

import pytest

from relet.core.rules.effect import request_key
from tests.processes.freezing import stands_still, thaw
from tests.processes.outside import KILLED
from tests.processes.whole import is_whole
from tests.waiting import eventually

pytestmark = pytest.mark.faults

CONTRACTS = ("keyed", "natural", "conditional", "queryable", "opaque")
REPEATABLE = ("keyed", "natural", "conditional")
POINTS = (
    "before:start_effect", "after:start_effect", "sending", "during", "received", "before:end_effect",
    "after:end_effect",
)  # fmt: skip
LANDED = POINTS[3:]
RECEIPT = {"version": 1, "value": "by relet"}
WAITS = "effect:"


def finish(steered, outside, task):
    """Settle the task; where it waits for a person, that person says what the service has seen. Was it so?"""
    found = outside.settle(task)
    if found.state == "done":
        return False
    assert (found.state, found.waiting_for[: len(WAITS)]) == ("waiting", WAITS)
    (effect,) = steered.effects(state="unknown")
    asked = outside.calls()
    _, applied = asked
    assert outside.settle(task).state == "waiting"
    assert outside.calls() == asked, "it is not tried while a person is asked"
    steered.reconcile(effect.id, "applied" if applied else "not_applied", RECEIPT if applied else None, by="ann")
    assert outside.settle(task).state == "done"
    return True


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_line_of_the_path_an_effect_applies_once_and_is_repeated_only_where_that_is_harmless(
    steered, outside, contract, point
):
    task = steered.submit("work", kind=contract)
    outside.killed(point)
    assert is_whole(steered)
    asked = finish(steered, outside, task)
    again = point in LANDED and point != "after:end_effect" and contract in REPEATABLE
    assert outside.calls() == (2 if again else 1, 1)
    recorded, kept = point != "before:start_effect", point == "after:end_effect"
    assert asked == (contract == "opaque" and recorded and not kept)
    assert steered.result(task.id) == RECEIPT
    assert is_whole(steered)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_reply_that_is_dropped_is_not_taken_for_a_refusal(steered, outside, contract):
    task = steered.submit("work", kind=contract)
    assert outside.worker("drop").wait() == 0
    (effect,) = steered.effects()
    assert effect.state == ("succeeded" if contract == "queryable" else "unknown")
    asked = finish(steered, outside, task)
    assert outside.calls() == (2 if contract in REPEATABLE else 1, 1)
    assert (asked, steered.result(task.id)) == (contract == "opaque", RECEIPT)


def test_effects_of_every_contract_apply_once_under_50_kills_at_random_moments(steered, outside):
    seed = random.randrange(1 << 32)
    chance, kills, tasks = random.Random(seed), 0, []
    while kills < 50:
        if not tasks or steered.task(tasks[-1].id).state == "done":
            tasks.append(steered.submit("work", kind="all"))
        worker = outside.worker()
        worker.line()
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(chance.random() * 0.15)
        worker.process.kill()
        kills += worker.wait() == KILLED
        steered.clock.advance("61s")
        assert is_whole(steered), f"seed {seed}"
        reconcile_as_seen(steered, outside)
    for task in tasks:
        while outside.settle(task).state != "done":
            reconcile_as_seen(steered, outside)
        assert steered.result(task.id) == dict.fromkeys(CONTRACTS, RECEIPT), f"seed {seed}"
    counts = outside.counts()
    assert len(counts["applied"]) == len(CONTRACTS) * len(tasks), f"seed {seed}"
    assert set(counts["applied"].values()) == {1}, f"seed {seed}"
    once = {calls for of, calls in counts["calls"].items() if of.split()[0] not in REPEATABLE}
    assert once == {1}, f"seed {seed}"


def reconcile_as_seen(steered, outside):
    """A person who looks at the service first; the workers that might still send are dead."""
    waiting = {one.waiting_for for one in steered.tasks(state="waiting")}
    for effect in steered.effects(state="unknown"):
        if f"{WAITS}{effect.id}" in waiting:
            applied = outside.counts()["applied"].get(f"{effect.name} {request_key(effect.id)}", 0)
            steered.reconcile(effect.id, "applied" if applied else "not_applied", RECEIPT if applied else None)


@pytest.mark.parametrize("contract", ["keyed", "opaque"])
def test_a_frozen_holder_that_wakes_after_its_successor_leaves_evidence_and_moves_nothing(steered, outside, contract):
    task = steered.submit("work", kind=contract)
    frozen = outside.worker("freeze")
    eventually(lambda: outside.calls()[0] == 1 and stands_still(frozen))
    token = steered.task(task.id).token
    successor = outside.settle(task)
    assert successor.state == ("done" if contract == "keyed" else "waiting")
    before = state_of(steered, task)
    thaw(frozen)
    assert frozen.wait() == 0, frozen.errors
    assert state_of(steered, task) == before
    (effect,) = steered.effects()
    assert [(one.token, one.attempt, one.outcome, one.receipt) for one in effect.evidence] == [
        (token, 1, "applied", RECEIPT)
    ]
    if contract == "opaque":
        steered.reconcile(effect.id, "applied", effect.evidence[0].receipt, by="ann")
        assert outside.settle(task).state == "done"
    assert (steered.result(task.id), outside.calls()[1]) == (RECEIPT, 1)
    assert is_whole(steered)


def state_of(steered, task):
    found, (effect,) = steered.task(task.id), steered.effects()
    return found, effect.state, effect.receipt, effect.tries, [str(one.kind) for one in steered.history(task.id)]
