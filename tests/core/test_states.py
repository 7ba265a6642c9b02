"""The legal moves, exhaustively: each pair of state and cause leads somewhere, or is a bug."""

from itertools import product

import pytest

from relet.core.model import Cause, State
from relet.core.states import FINISHED, MOVES, diagram, move

R, L, W, D, F, C = State.READY, State.LEASED, State.WAITING, State.DONE, State.FAILED, State.CANCELLED
# From, by, to: written out a second time, so that a slip in the table is seen.
LEGAL = {
    (None, "submitted"): R,
    (R, "claimed"): L,
    (R, "cancelled"): C,
    (R, "failed"): F,
    (L, "completed"): D,
    (L, "retried"): R,
    (L, "failed"): F,
    (L, "released"): R,
    (L, "lapsed"): R,
    (L, "saved"): L,
    (L, "stepped"): L,
    (L, "attached"): L,
    (L, "effect_started"): L,
    (L, "cancel_requested"): L,
    (L, "cancelled"): C,
    (L, "parked"): W,
    (W, "answered"): R,
    (W, "cancelled"): C,
    (F, "requeued"): R,
    (C, "requeued"): R,
}
STAYING = [cause for (origin, cause), target in LEGAL.items() if origin is target]
EVERY = list(product([None, *State], Cause))


@pytest.mark.parametrize(("origin", "cause"), EVERY, ids=[f"{origin}-{cause}" for origin, cause in EVERY])
def test_every_pair_of_state_and_cause_is_a_legal_move_or_a_bug(origin, cause):
    if (origin, str(cause)) in LEGAL:
        assert move(origin, cause) is LEGAL[origin, str(cause)]
    else:
        with pytest.raises(LookupError, match=f"no move leads from {origin} by {cause}"):
            move(origin, cause)


def test_nothing_leaves_done():
    assert not [cause for origin, cause in MOVES if origin is D]


def test_only_an_operator_leaves_a_finished_state():
    assert {cause for origin, cause in MOVES if origin in FINISHED} == {Cause.REQUEUED}


def test_only_a_claim_leads_into_leased_from_elsewhere():
    assert {cause for (origin, cause), target in MOVES.items() if target is L and origin is not L} == {Cause.CLAIMED}


def test_every_state_can_be_reached_from_nothing():
    reached = {None}
    for _ in State:
        reached |= {target for (origin, _), target in MOVES.items() if origin in reached}
    assert reached == {None, *State}


def test_the_diagram_shows_each_move_once_and_where_it_ends():
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert "    [*] --> ready: submitted" in lines
    assert "    leased --> waiting: parked" in lines
    assert not any(str(cause) in line for cause in STAYING for line in lines), "no move, no arrow"
    assert lines[-3:] == ["    done --> [*]", "    failed --> [*]", "    cancelled --> [*]"]
    assert len(set(lines)) == len(lines) == 1 + len(LEGAL) - len(STAYING) + 3
