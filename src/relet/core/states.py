"""The legal moves of a task, as a table; rules ask it, and the diagram in the docs is made from it.

Two rules for this file: everything that decides a state lives here, and nothing here knows why a move is made.
"""

from __future__ import annotations

from typing import Final

from relet.core.model import Cause, State

MOVES: Final[dict[tuple[State | None, Cause], State]] = {
    (None, Cause.SUBMITTED): State.READY,
    (State.READY, Cause.CLAIMED): State.LEASED,
    (State.LEASED, Cause.COMPLETED): State.DONE,
    (State.LEASED, Cause.RETRIED): State.READY,
    (State.LEASED, Cause.LAPSED): State.READY,
    (State.LEASED, Cause.RELEASED): State.READY,
    (State.LEASED, Cause.FAILED): State.FAILED,
    (State.LEASED, Cause.SAVED): State.LEASED,
    (State.LEASED, Cause.STEPPED): State.LEASED,
    (State.LEASED, Cause.ATTACHED): State.LEASED,
    (State.LEASED, Cause.EFFECT_STARTED): State.LEASED,
    (State.LEASED, Cause.CANCEL_REQUESTED): State.LEASED,
    (State.LEASED, Cause.CANCELLED): State.CANCELLED,
    (State.LEASED, Cause.PARKED): State.WAITING,
    (State.WAITING, Cause.ANSWERED): State.READY,
    (State.WAITING, Cause.CANCELLED): State.CANCELLED,
    (State.READY, Cause.CANCELLED): State.CANCELLED,
    (State.READY, Cause.FAILED): State.FAILED,
    (State.FAILED, Cause.REQUEUED): State.READY,
    (State.CANCELLED, Cause.REQUEUED): State.READY,
}

FINISHED: Final = frozenset({State.DONE, State.FAILED, State.CANCELLED})
"""States in which nothing more happens by itself."""


def move(origin: State | None, cause: Cause) -> State:
    """The state that `cause` leads to from `origin`. An illegal move is a bug, hence LookupError."""
    try:
        return MOVES[origin, cause]
    except KeyError:
        raise LookupError(f"no move leads from {origin} by {cause}") from None


def diagram() -> str:
    """The table as a Mermaid state diagram, for the docs."""
    lines = ["stateDiagram-v2"]
    for (origin, cause), target in MOVES.items():
        if origin != target:
            lines.append(f"    {origin or '[*]'} --> {target}: {cause}")
    lines += [f"    {state} --> [*]" for state in State if state in FINISHED]
    return "\n".join(lines)
