"""What is done to the holders of one run: which of them is killed, frozen or cut off, and when; made from a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from relet.core.border import invalid, shown


class Action(StrEnum):
    """What happens to a holder."""

    KILL_BEFORE = "kill-before"
    """SIGKILL just before the commit."""
    KILL_AFTER = "kill-after"
    """SIGKILL just after it; the holder never learns of it."""
    FREEZE_BEFORE = "freeze-before"
    """SIGSTOP just before the commit; it wakes once its lease has lapsed and somebody else has worked."""
    FREEZE_AFTER = "freeze-after"
    DROP = "drop"
    """The reply is lost after the commit: the holder gets `OutcomeUnknown`."""
    REPEAT = "repeat"
    """The reply is lost after the commit, and the request is sent once more."""
    AWAY = "away"
    """The store takes nothing: the holder gets `Unavailable`."""
    KILL_AT = "kill-at"
    """SIGKILL so many milliseconds after the first grant."""
    FREEZE_AT = "freeze-at"


BEFORE: Final = frozenset({Action.KILL_BEFORE, Action.FREEZE_BEFORE, Action.AWAY})
TIMED: Final = frozenset({Action.KILL_AT, Action.FREEZE_AT})
AT_COMMITS: Final = tuple(action for action in Action if action not in TIMED)
_FAULT: Final = re.compile(r"([a-z-]+):(\d{1,9})(ms)?")
FAULTS_MAX: Final = 10
TRANSACTION: Final = "transaction"
CLAIM: Final = "claim"


class Fault(NamedTuple):
    """One thing done to one holder: at the n-th commit of the run, or so many milliseconds after its first grant."""

    action: Action
    at: int

    def __str__(self) -> str:
        return f"{self.action}:{self.at}{'ms' if self.action in TIMED else ''}"


class Commit(NamedTuple):
    """A commit of the run without faults."""

    n: int
    verb: str
    name: str

    def __str__(self) -> str:
        return f"{self.verb} {self.name}".rstrip()

    def admits(self, action: Action) -> bool:
        """Can it be done here: nobody is stopped before a claim, which may find nothing, nor inside a user's lock."""
        if self.verb == CLAIM:
            return action not in BEFORE
        return self.verb != TRANSACTION or action not in (Action.FREEZE_BEFORE, Action.REPEAT)


Plan = tuple[Fault, ...]
"""The faults of one run; each strikes one holder, in this order. Without any, the run is what others are held to."""


def told(plan: Plan) -> str:
    """A plan as text, for `--point`."""
    return ",".join(map(str, plan)) or "none"


def read(text: str) -> Plan:
    """The plan that a text means, such as kill-after:3 or freeze-before:2,kill-at:40ms. Raises `Invalid`."""
    if text.strip() == "none":
        return ()
    faults = [_fault(part.strip()) for part in text.split(",")]
    if len(faults) > FAULTS_MAX:
        raise invalid("point", f"has {len(faults)} faults; {FAULTS_MAX} at most in one run")
    return tuple(faults)


def _fault(text: str) -> Fault:
    found = _FAULT.fullmatch(text)
    if found is None or found[1] not in list(Action):
        raise invalid(
            "point", f"{shown(text)} is no fault; write ACTION:N, as in kill-after:3, with {', '.join(AT_COMMITS)}; "
            "or kill-at:40ms, freeze-at:40ms"
        )  # fmt: skip
    action = Action(found[1])
    if (action in TIMED) != bool(found[3]):
        raise invalid("point", f"{shown(text)}: {action} takes {'milliseconds' if action in TIMED else 'a commit'}")
    if not found[3] and int(found[2]) < 1:
        raise invalid("point", f"{shown(text)}: commits are counted from 1")
    return Fault(action, int(found[2]))


class Points(StrEnum):
    """Which runs are made."""

    ALL = "all"
    COMMITS = "commits"
    RANDOM = "random"


RANDOM_SHARE: Final = 4
"""One run in so many is a random one, where both kinds are wanted."""


def at_commits(commits: Sequence[Commit]) -> list[Plan]:
    """Each thing that can be done at each commit, one by one."""
    return [
        (Fault(action, commit.n),) for commit in commits for action in AT_COMMITS if commit.admits(action)
    ]  # fmt: skip


def at_random(commits: Sequence[Commit], holder_ms: int, seed: int) -> Iterator[Plan]:
    """Plans without end, each with one to three faults, at commits or at any time; the same for the same seed."""
    index = 0
    while True:
        index += 1
        yield _some(random.Random(f"{seed}:{index}"), commits, holder_ms)


def _some(chance: random.Random, commits: Sequence[Commit], holder_ms: int) -> Plan:
    faults: list[Fault] = []
    after = 0
    for _ in range(chance.choice((1, 1, 2, 3))):
        # An earlier fault makes the run longer, so that commits are counted beyond those of a run without.
        left = [commit for commit in commits if commit.n > after] or list(commits)
        commit = chance.choice(left)
        if chance.random() < 0.5:  # noqa: PLR2004 - even chances
            faults.append(Fault(chance.choice((Action.KILL_AT, Action.FREEZE_AT)), chance.randint(0, holder_ms)))
        else:
            after = commit.n
            faults.append(Fault(chance.choice([one for one in AT_COMMITS if commit.admits(one)]), commit.n))
    return tuple(faults)


def plans(commits: Sequence[Commit], holder_ms: int, *, seed: int, points: Points, runs: int) -> list[Plan]:
    """So many plans at most: all at commits or, if there are more, some of them by the seed; then random ones."""
    some: list[Plan] = []
    if points is not Points.RANDOM:
        every = at_commits(commits)
        room = runs if points is Points.COMMITS else runs - runs // RANDOM_SHARE
        if len(every) > room:
            chosen = random.Random(f"{seed}").sample(range(len(every)), room)
            every = [every[index] for index in sorted(chosen)]
        some += every
    if points is not Points.COMMITS:
        left = runs if points is Points.RANDOM else min(runs - len(some), max(1, runs // RANDOM_SHARE))
        some += [plan for plan, _ in zip(at_random(commits, holder_ms, seed), range(left), strict=False)]
    return some
