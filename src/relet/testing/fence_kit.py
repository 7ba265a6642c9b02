"""Prove a fence, ours or your own, with real processes: an older holder never writes after a newer one has raised it.

    @contextmanager
    def shelf():                                     # opened once in each process, so importable from a module
        fence = ShelfFence("/srv/shelf")
        yield Subject(fence, put=..., read=..., put_bare=...)

    def test_the_shelf_is_fenced():
        check_fence(shelf)

`check_fence` runs every check of `CHECKS`; a test may also run them one by one, each on a `Proof`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from relet.core import limits
from relet.core.errors import Invalid, StaleToken, Unavailable
from relet.core.model import LostReason
from relet.testing.fence_hand import PATIENCE_S, Hand, Planned, Subject, hands

__all__ = ["CHECKS", "Proof", "Subject", "check_fence", "proof"]

ODD_NAMES: Final = (
    "with blanks  two", "ünïcödé ✓", "quote' and \"", "100% =41", "semi;colon --", "{tag}:7", "refs..lock~^:?*[", "*",
    "UPPER", "upper", "-dash", "ends.lock", "x" * 190,
)  # fmt: skip
BAD_TOKENS: Final = (0, -1, 1 << 53, 1.0, True, "7", None)
BAD_NAMES: Final = ("", "a\x00b", "a\nb", "x" * 201, 7, None, "\ud800")
CROWD: Final = 4
WRITES: Final = 8
NUMBERS = itertools.count(1)


class Proof:
    """What a check works with: processes that are reused while they live, and a resource of its own."""

    def __init__(self, start: Callable[[], Hand], *, holds: bool, at_once: bool, names: Sequence[str]) -> None:
        self._start = start
        self._idle: list[Hand] = []
        self.at_once = at_once
        """Does each write of a block land by itself, as a request does: then an exception after it undoes nothing."""
        self.holds = holds
        """Does a block hold a lock of the target: then a holder that is stopped inside it blocks the next one."""
        self.names = names
        """Odd names that the fence takes."""
        self.resource = ""

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Proof]:
        """A resource that nobody has used."""
        self.resource = f"resource-{os.getpid()}-{next(NUMBERS)}"
        yield self

    @contextlib.contextmanager
    def holders(self, count: int) -> Iterator[list[Hand]]:
        """Some processes; one that a check has killed is not used again."""
        got = [self._idle.pop() if self._idle else self._start() for _ in range(count)]
        yield got
        self._idle += [hand for hand in got if hand.is_alive()]


def check_fence(
    open_subject: Callable[[], AbstractContextManager[Subject]],
    *,
    holds: bool = False,
    at_once: bool = False,
    names: Sequence[str] = ODD_NAMES,
) -> None:
    """Run every check, on a target that no earlier run has used.

    `holds` says that a block holds a lock, `at_once` that each write in it lands by itself, `names` which odd names
    the fence takes.

    `open_subject` is called in other processes: a function of a module, or a `functools.partial` of one.
    """
    with proof(open_subject, holds=holds, at_once=at_once, names=names) as proved:
        for check in CHECKS:
            with proved.fresh():
                check(proved)


@contextlib.contextmanager
def proof(
    open_subject: Callable[[], AbstractContextManager[Subject]],
    *,
    holds: bool = False,
    at_once: bool = False,
    names: Sequence[str] = ODD_NAMES,
) -> Iterator[Proof]:
    """What the checks work with; its processes end with the block."""
    with hands(open_subject) as start:
        yield Proof(start, holds=holds, at_once=at_once, names=names)


def a_larger_and_an_equal_token_is_accepted_and_a_smaller_one_refused(proof: Proof) -> None:
    """And the refusal names both, and changes nothing."""
    with proof.holders(1) as (hand,):
        for token, text in [(5, "five"), (5, "five again"), (1 << 32 | 9, "many"), (limits.TOKEN_MAX, "the largest")]:
            assert hand("write", proof.resource, token, text) is None
            assert hand("read", proof.resource) == text
        for verb in (("raise_to", proof.resource, 5), ("write", proof.resource, 5, "late")):
            _is_stale(hand(*verb), 5, limits.TOKEN_MAX)
        assert hand("read", proof.resource) == "the largest"


def a_raise_alone_keeps_smaller_tokens_out(proof: Proof) -> None:
    """The first act of a new holder, before it reads."""
    with proof.holders(2) as (old, new):
        assert old("write", proof.resource, 1, "old") is None
        assert new("raise_to", proof.resource, 2) is None
        assert new("raise_to", proof.resource, 2) is None
        _is_stale(old("write", proof.resource, 1, "late"), 1, 2)
        assert new("read", proof.resource) == "old"


def a_holder_stopped_between_its_look_at_the_lease_and_its_write_is_refused(proof: Proof) -> None:
    """LL-04: its own check was long ago; what counts is the one where the write lands."""
    with proof.holders(2) as (old, new):
        assert old("write", proof.resource, 1, "old") is None
        old.tell("write", proof.resource, 1, "late", stop="before")
        assert new("raise_to", proof.resource, 2) is None
        assert new("read", proof.resource) == "old"
        assert new("write", proof.resource, 2, "new") is None
        _is_stale(old.go_on(), 1, 2)
        assert new("read", proof.resource) == "new"


def the_same_run_without_the_fence_lets_the_late_write_through(proof: Proof) -> None:
    """The negative control: the check above can fail, since this is what it would see."""
    with proof.holders(2) as (old, new):
        old.tell("write_bare", proof.resource, "late", stop="before")
        new("write_bare", proof.resource, "new")
        assert new("read", proof.resource) == "new"
        old.go_on()
        assert new("read", proof.resource) == "late"


def a_holder_stopped_inside_its_block_writes_nothing_after_a_raise(proof: Proof) -> None:
    """Either nobody can raise while it stands there, and is told so in time; or the end of its block is refused."""
    with proof.holders(2) as (old, new):
        assert old("write", proof.resource, 1, "old") is None
        old.tell("write", proof.resource, 1, "late", stop="inside")
        raised = new("raise_to", proof.resource, 2)
        if not proof.holds:
            assert raised is None
            assert new("read", proof.resource) == "old"
            _is_stale(old.go_on(), 1, 2)
            assert new("read", proof.resource) == "old"
            return
        assert isinstance(raised, Unavailable), raised
        assert old.go_on() is None  # nobody has raised: it is still the holder that counts
        assert new("raise_to", proof.resource, 2) is None
        assert new("read", proof.resource) == "late"
        _is_stale(old("write", proof.resource, 1, "later"), 1, 2)


def a_holder_killed_inside_its_block_leaves_nothing_and_blocks_nobody(proof: Proof) -> None:
    """Its locks end with it."""
    with proof.holders(2) as (old, new):
        assert old("write", proof.resource, 1, "old") is None
        old.tell("write", proof.resource, 1, "half", stop="inside")
        old.kill()
        _until(lambda: new("raise_to", proof.resource, 2) is None)
        assert new("read", proof.resource) == "old"
        assert new("write", proof.resource, 2, "new") is None
        assert new("read", proof.resource) == "new"


def a_raise_outlives_the_process_that_made_it(proof: Proof) -> None:
    """It is kept by the target, and not by a process."""
    with proof.holders(2) as (new, other):
        assert new("raise_to", proof.resource, 2) is None
        new.kill()
        _is_stale(other("write", proof.resource, 1, "late"), 1, 2)
        assert other("read", proof.resource) is None
        assert other("write", proof.resource, 3, "next") is None


def an_exception_in_the_block_leaves_nothing(proof: Proof) -> None:
    """And the holder may go on."""
    with proof.holders(1) as (hand,):
        assert hand("write", proof.resource, 1, "old") is None
        assert isinstance(hand("write_and_fail", proof.resource, 1, "half"), Planned)
        assert hand("read", proof.resource) == ("half" if proof.at_once else "old")
        assert hand("write", proof.resource, 1, "whole") is None
        assert hand("read", proof.resource) == "whole"


def resources_do_not_disturb_each_other(proof: Proof) -> None:
    """Whatever their names: each has its own fence, and its own value."""
    with proof.holders(1) as (hand,):
        for index, name in enumerate(proof.names):
            assert hand("write", name, 100 - index, f"value {index}") is None, name
        assert [hand("read", name) for name in proof.names] == [f"value {index}" for index in range(len(proof.names))]
        for index, name in enumerate(proof.names):
            _is_stale(hand("write", name, 99 - index, "late"), 99 - index, 100 - index)


def bad_tokens_and_bad_names_are_refused_and_named(proof: Proof) -> None:
    """Before anything is touched."""
    with proof.holders(1) as (hand,):
        for token in BAD_TOKENS:
            _is_invalid(hand("raise_to", proof.resource, token), "token")
            _is_invalid(hand("write", proof.resource, token, "bad"), "token")
        for name in BAD_NAMES:
            _is_invalid(hand("raise_to", name, 1), "resource")
            _is_invalid(hand("write", name, 1, "bad"), "resource")
        assert hand("read", proof.resource) is None
        assert hand("write", proof.resource, 1, "good") is None


def of_a_crowd_only_the_newest_holder_writes_to_the_end(proof: Proof) -> None:
    """All at once: whoever was refused once is refused for ever, and the last value is the newest holder's."""
    with proof.holders(CROWD) as crowd:
        for token, hand in enumerate(crowd, 1):
            hand.tell("write_many", proof.resource, token, WRITES)
        done = [hand.answer() for hand in crowd]
        assert done[-1] == WRITES, done
        assert all(isinstance(count, int) for count in done), done
        assert crowd[0]("read", proof.resource) == f"{CROWD}"
        for token, hand in enumerate(crowd[:-1], 1):
            _is_stale(hand("write", proof.resource, token, "late"), token, CROWD)


CHECKS: Final[tuple[Callable[[Proof], None], ...]] = (
    a_larger_and_an_equal_token_is_accepted_and_a_smaller_one_refused,
    a_raise_alone_keeps_smaller_tokens_out,
    a_holder_stopped_between_its_look_at_the_lease_and_its_write_is_refused,
    the_same_run_without_the_fence_lets_the_late_write_through,
    a_holder_stopped_inside_its_block_writes_nothing_after_a_raise,
    a_holder_killed_inside_its_block_leaves_nothing_and_blocks_nobody,
    a_raise_outlives_the_process_that_made_it,
    an_exception_in_the_block_leaves_nothing,
    resources_do_not_disturb_each_other,
    bad_tokens_and_bad_names_are_refused_and_named,
    of_a_crowd_only_the_newest_holder_writes_to_the_end,
)
"""Every check, in the order in which `check_fence` runs them."""


def _is_stale(answer: Any, token: int, current: int) -> None:
    assert isinstance(answer, StaleToken), f"not refused as stale: {answer!r}"
    assert (answer.token, answer.current_token) == (token, current)
    assert (answer.reason, answer.code, answer.retryable) == (LostReason.SUPERSEDED, "RELET-STALE-TOKEN", False)


def _is_invalid(answer: Any, field: str) -> None:
    assert isinstance(answer, Invalid), f"not refused as invalid: {answer!r}"
    assert answer.detail["field"] == field
    assert str(answer).startswith(f"{field}: ")


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, f"it did not come true within {PATIENCE_S:g} s"
