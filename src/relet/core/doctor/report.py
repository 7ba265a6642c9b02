"""What an examination answers: every check with what it saw, every finding with its evidence and its fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from relet.core.doctor.condition import Condition
from relet.core.doctor.facts import Facts


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody should do something about."""

    check: str
    """The name of the check that found it; stable."""
    tenant: str | None = None
    """Whose work it is about; null for what the store stands on."""
    evidence: str
    """What was seen, with its figures."""
    fix: str
    """What to do, with the command where there is one."""
    detail: dict[str, Any] = {}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A check that was made, and what it looked at."""

    check: str
    seen: str
    ok: bool
    tenant: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All checks and all findings; well when there are none."""

    place: str
    findings: list[Finding]
    checks: list[Seen]


class Problem(NamedTuple):
    """A finding before it knows which check made it."""

    evidence: str
    fix: str
    detail: dict[str, Any]


class Found(NamedTuple):
    """What one check saw, and what of it is not as it should be."""

    seen: str
    problems: tuple[Problem, ...] = ()


def amiss(seen: str, evidence: str, fix: str, **detail: Any) -> Found:
    """One problem."""
    return Found(seen, (Problem(evidence, fix, detail),))


class Check(NamedTuple):
    """One question: its name, and the function that answers it, or answers None where it cannot be asked."""

    name: str
    ask: Callable[[Facts], Found | None]


class WorkCheck(NamedTuple):
    """One question about the work of a tenant, who is named in commands where one is given."""

    name: str
    ask: Callable[[Condition, str | None], Found]


def duration(ms: float) -> str:
    """A span of time, as people say it."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if ms >= 2 * size or (unit == "s" and ms >= size):
            return f"{ms / size:.3g} {unit}"
    return f"{ms:.0f} ms"


def size(count: int) -> str:
    """A number of bytes, as people say it."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << power:
            return f"{count / (1 << power):.1f} {unit}"
    return f"{count} bytes"
