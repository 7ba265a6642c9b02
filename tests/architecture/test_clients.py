"""The blocking and the awaiting client offer the same verbs with the same arguments; only the awaiting differs."""

import inspect
import re

import pytest

from relet.client.awaiting import AsyncClient
from relet.client.awaiting_lease import AsyncLease
from relet.client.awaiting_upkeep import AsyncUpkeepVerbs
from relet.client.awaiting_work import AsyncWorkVerbs
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.client.blocking_upkeep import UpkeepVerbs
from relet.client.blocking_work import WorkVerbs
from relet.client.durable.run import AsyncRun, Run

PAIRS = [
    (Client, AsyncClient), (WorkVerbs, AsyncWorkVerbs), (UpkeepVerbs, AsyncUpkeepVerbs), (Lease, AsyncLease),
    (Run, AsyncRun),
]  # fmt: skip
# What one class lends to the other half of the library, and no user calls.
INNER = {
    "claim_once", "claim_waiting", "leases_of", "holder_of", "settled", "settled_all", "keep_quietly", "hop",
    "granted",
    "send",
    "parks", "filed", "fetched", "bind", "unbind", "seen", "give_back", "ends",
}  # fmt: skip
# `lease.submit` carries out `run.submit`, which both runs have.
LENT = {Lease: {"submit"}}
AWAITED = re.compile(r"\bAsync(?=Client|Lease|Run|Iterator)")
MARKS = ({"submit", "claim"}, {"decide", "signal"}, {"complete", "park"}, {"step", "effect"}, {"verify"})
"""Verbs that tell that a pair was read at all."""


def verbs(kind):
    """Public functions of a class, by name; what classes above it share is the same for both by itself."""
    return {
        name: value
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_") and name not in INNER | LENT.get(kind, set())
    }


def said(annotation):
    """An annotation without what only awaiting changes."""
    return AWAITED.sub("", str(annotation))


def arguments(verb):
    return [(name, item.kind, item.default, said(item.annotation)) for name, item in parameters(verb)]


def parameters(verb):
    return inspect.signature(inspect.unwrap(verb)).parameters.items()


def differences(blocking, awaiting):
    ours, theirs = verbs(blocking), verbs(awaiting)
    for name in sorted(set(ours) ^ set(theirs)):
        yield f"{name} is a verb of {blocking.__name__} or of {awaiting.__name__}, not of both"
    for name in sorted(set(ours) & set(theirs)):
        if arguments(ours[name]) != arguments(theirs[name]):
            yield f"{name} takes other arguments: {arguments(ours[name])} and {arguments(theirs[name])}"
        if said(returned(ours[name])) != said(returned(theirs[name])):
            yield f"{name} answers {returned(ours[name])} and {returned(theirs[name])}"
        if is_awaited(ours[name]) or not is_awaited(theirs[name]):
            yield f"{name} is awaited in the wrong client"


def returned(verb):
    return inspect.signature(inspect.unwrap(verb)).return_annotation


def is_awaited(verb):
    inner = inspect.unwrap(verb)  # below a decorator that makes a context manager
    return inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)


@pytest.mark.parametrize(("blocking", "awaiting"), PAIRS)
def test_both_clients_have_the_same_verbs_and_signatures(blocking, awaiting):
    assert (found := list(differences(blocking, awaiting))) == [], "\n".join(found)


@pytest.mark.parametrize(("blocking", "awaiting"), PAIRS)
def test_both_have_verbs_at_all(blocking, awaiting):
    assert len(verbs(blocking)) >= (3 if blocking is UpkeepVerbs else 8)
    assert any(marks <= set(verbs(blocking)) for marks in MARKS)


def test_what_stands_aside_from_the_comparison_exists():
    assert {name for pair in PAIRS for kind in pair for name in vars(kind)} >= INNER
    assert all(lent <= set(vars(kind)) for kind, lent in LENT.items())


class Ours:
    def same(self, a, b=1): ...
    def kind(self, *, a): ...
    def default(self, a=1): ...
    def answer(self) -> list[Lease]: ...
    def only_ours(self): ...
    def blocks(self): ...
    def _inner(self): ...


class Theirs:
    async def same(self, a, b=1): ...
    async def kind(self, a): ...
    async def default(self, a=2): ...
    async def answer(self) -> list[int]: ...
    def blocks(self): ...


def test_a_verb_that_differs_is_found():
    found = [line.split()[0] for line in differences(Ours, Theirs)]
    assert found == ["only_ours", "answer", "blocks", "default", "kind"]
