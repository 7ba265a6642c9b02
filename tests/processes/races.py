"""Rounds of two processes that do one thing each at the same instant; one of them wins."""

import random
from collections import Counter

from tests.processes.actor import refusal, together
from tests.processes.whole import is_whole, tokens_in_order_of_claims

TTL_S = 60


def claim_against_claim(db, actors, rounds):
    """One ready task, two claims: who won, how often."""
    first, second = actors
    winners = Counter()
    for _ in range(rounds):
        task = db.submit("work")
        answers = together((first, "claim", "work"), (second, "claim", "work"))
        won = [answer for answer in answers if answer is not None]
        assert [answer["id"] for answer in won] == [task.id], answers
        winner = actors[answers.index(won[0])]
        winners[winner] += 1
        assert winner("complete") is None
    tokens = tokens_in_order_of_claims(db)
    assert len(set(tokens)) == rounds
    assert tokens == sorted(tokens)
    assert is_whole(db)
    return winners


def completion_against_sweep(db, holder, sweeper, mover, rounds):
    """The lease expires while its holder completes and another process sweeps: which end it took, how often."""
    chance = random.Random(rounds)
    ends = Counter()
    for _ in range(rounds):
        task = db.submit("work", max_losses=1, ttl=TTL_S)
        assert holder("claim", "work")["id"] == task.id
        told, swept, _ = together(
            (holder, "complete", "result"), (sweeper, "sweep"), (mover, "advance", TTL_S),
            offsets_s=(0, chance.uniform(-0.001, 0.001), chance.uniform(-0.002, 0.002)),
        )  # fmt: skip
        db.sweep()
        found = db.task(task.id)
        history = db.history(task.id)
        kinds = [str(event.kind) for event in history]
        held_s = (history[-1].at - history[1].at).total_seconds()
        if told is None:
            assert (found.state, found.result, kinds) == ("done", "result", ["submitted", "claimed", "completed"])
            # Not the date of its end: the wall clock is read after the one that judges, and may have moved between.
            assert swept == 0
        else:
            assert held_s >= TTL_S
            assert (told["error"], told["reason"]) == ("LeaseLost", "expired")
            assert (found.state, found.result, kinds) == ("failed", None, ["submitted", "claimed", "failed"])
        ends[str(found.state)] += 1
    assert is_whole(db)
    return ends


def cancel_against_claim(db, claimer, canceller, rounds):
    """A claim and a cancel at once: how far the task got, how often."""
    chance = random.Random(rounds)
    ends = Counter()
    for _ in range(rounds):
        task = db.submit("work")
        lease, cancelled = together(
            (claimer, "claim", "work"), (canceller, "cancel", task.id),
            offsets_s=(chance.uniform(0, 0.001), chance.uniform(0, 0.001)),
        )  # fmt: skip
        assert cancelled == ("cancelled" if lease is None else "leased")
        if lease is not None:
            # It started: it is told, and the task is cancelled only once it has given way.
            assert claimer("renew") == {"error": "LeaseLost", "reason": "cancelled", "code": "RELET-LEASE-LOST"}
            assert refusal(claimer("save", "too late")) == "LeaseLost"
            assert (db.task(task.id).state, db.task(task.id).cancel_requested) == ("leased", True)
            assert claimer("release") == "cancelled"
        found = db.task(task.id)
        assert (found.state, found.attempt, found.losses) == ("cancelled", 1, 0)
        ends["never started" if lease is None else "started and told"] += 1
    assert is_whole(db)
    return ends
