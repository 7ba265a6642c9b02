"""All checks over one set of facts; the one list of what `relet doctor` looks at."""

from __future__ import annotations

from typing import Final

from relet.core.doctor.facts import Facts
from relet.core.doctor.place_checks import PLACE_CHECKS
from relet.core.doctor.report import Finding, Report, Seen
from relet.core.doctor.work_checks import WORK_CHECKS

CHECKS: Final = (*PLACE_CHECKS, *WORK_CHECKS)


def examine(place: str, facts: Facts) -> Report:
    """Ask every question that can be asked."""
    asked = [(check.name, found) for check in CHECKS if (found := check.ask(facts)) is not None]
    return Report(
        place=place,
        findings=[
            Finding(check=name, evidence=one.evidence, fix=one.fix, detail=one.detail)
            for name, found in asked
            for one in found.problems
        ],
        checks=[Seen(check=name, seen=found.seen, ok=not found.problems) for name, found in asked],
    )
