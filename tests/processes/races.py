"""Rounds of two processes that do one thing each at the same instant; one of them wins."""

import random
from collections import Counter

from tests.processes.actor import refusal, together
from tests.processes.whole import is_whole, tokens_in_order_of_claims

TTL_S = 60
JITTER_S = 0.0005
STEP_S, STEP_S_MAX = 0.0001, 0.005


class Handicap:
    """Of two that race, who has won begins later the next time: so both win some rounds on whatever machine.

    The later the more rounds it won in a row, and little at a time while they take turns: then both come to the
    store at about one instant, which is what a race is run for.
    """

    def __init__(self, seed):
        self._chance = random.Random(seed)
        self._lag_s, self._step_s, self._last = 0.0, STEP_S, None

    def offsets_s(self):
        """By how much the first and the second begin later than they might."""
        jitter_s = self._chance.uniform(-JITTER_S, JITTER_S)
        return max(0.0, self._lag_s + jitter_s), max(0.0, -self._lag_s - jitter_s)

    def won(self, by_first):
        self._step_s = min(2 * self._step_s, STEP_S_MAX) if by_first == self._last else STEP_S
        self._lag_s += self._step_s if by_first else -self._step_s
        self._last = by_first


def claim_against_claim(db, actors, rounds):
    """One ready task, two claims: who won, how often."""
    first, second = actors
    winners, handicap = Counter(), Handicap(rounds)
    for _ in range(rounds):
        task = db.submit("work")
        answers = together((first, "claim", "work"), (second, "claim", "work"), offsets_s=handicap.offsets_s())
        won = [answer for answer in answers if answer is not None]
        assert [answer["id"] for answer in won] == [task.id], answers
        winner = actors[answers.index(won[0])]
        winners[winner] += 1
        handicap.won(winner == first)
        assert winner("complete") is None
    tokens = tokens_in_order_of_claims(db)
    assert len(set(tokens)) == rounds
    assert tokens == sorted(tokens)
    assert is_whole(db)
    return winners


def completion_against_sweep(db, holder, sweeper, mover, rounds):
    """The lease expires while its holder completes and another process sweeps: which end it took, how often."""
    chance, handicap = random.Random(rounds), Handicap(rounds)
    ends = Counter()
    for _ in range(rounds):
        task = db.submit("work", max_losses=1, ttl=TTL_S)
        assert holder("claim", "work")["id"] == task.id
        completes_s, moves_s = handicap.offsets_s()
        told, swept, _ = together(
            (holder, "complete", "result"), (sweeper, "sweep"), (mover, "advance", TTL_S),
            offsets_s=(completes_s, moves_s + chance.uniform(-0.001, 0.001), moves_s),
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
        handicap.won(told is None)
    assert is_whole(db)
    return ends


def cancel_against_claim(db, claimer, canceller, rounds):
    """A claim and a cancel at once: how far the task got, how often."""
    ends, handicap = Counter(), Handicap(rounds)
    for _ in range(rounds):
        task = db.submit("work")
        lease, cancelled = together(
            (claimer, "claim", "work"), (canceller, "cancel", task.id),
            offsets_s=handicap.offsets_s(),
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
        handicap.won(lease is not None)
    assert is_whole(db)
    return ends
