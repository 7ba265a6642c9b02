"""What a mutant is, and the promises that mutants are about."""

from __future__ import annotations

from typing import Final, NamedTuple

CONFORMANCE: Final = "tests/conformance"
CORE: Final = "tests/core"
STORE: Final = "tests/store"
CLIENT: Final = "tests/client"
DURABLE: Final = "tests/durable"
WORKER: Final = "tests/worker"

PROMISES: Final[dict[str, str]] = {
    "P1": "one valid token for each task; tokens grow and never come back",
    "P2": "only the holder writes, before its lease ends; a refusal changes nothing",
    "P3": "a lease lasts its ttl at least, whatever happens to clocks and machine",
    "P4": "at the instant at which it ends, it has ended",
    "P5": "lost is lost",
    "P6": "the holder lets go before the store gives the task away",
    "P7": "acknowledged is on disk",
    "P8": "a fence that was raised stays raised",
    "P9": "the task of a holder that is gone comes back, and soon",
    "P10": "no effect is sent before it is on record, and none is repeated blindly",
    "P11": "one key, one payload",
    "P12": "no heartbeat keeps a lease for ever",
    "P13": "nothing is half done",
    "P15": "nothing is reached without authorisation; tenants neither see nor touch each other",
    "P16": "nothing that is stored runs",
    "rest": "a worker that has nothing to do asks for nothing, and sees at once what comes",
    "fairness": "turns, limits and rates hold, and storms are spread",
    "telling": "what is amiss is told, with who, which token and why",
    "attempts": "what is nobody's failure costs no attempt",
    "history": "everything that happened is in the history",
    "long work": "as long as the process lives its heartbeat keeps the lease",
    "steps": "what was kept is not called again",
    "upkeep": "what leaves is owed to nobody, and what was kept can be gone back to",
    "transactions": "a user's own transaction obeys the lease, and cannot reach past it",
    "waits": "a decision is for its question, and is never spent and lost",
}
"""In the order in which they are shown; those with a number must have a mutant each."""


class Mutant(NamedTuple):
    """One change of one file under src/relet, the promises that it breaks, and the test that it must not survive."""

    name: str
    promises: tuple[str, ...]
    file: str
    old: str
    new: str
    test: str
