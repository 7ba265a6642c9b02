"""All checks over one set of facts; the one list of what `relet doctor` looks at."""

from __future__ import annotations

from typing import Final

from relet.core.doctor.facts import Facts
from relet.core.doctor.place_checks import PLACE_CHECKS
from relet.core.doctor.report import Finding, Found, Report, Seen
from relet.core.doctor.server_checks import SERVER_CHECKS
from relet.core.doctor.work_checks import WORK_CHECKS

CHECKS: Final = (*PLACE_CHECKS, *WORK_CHECKS)


def examine(place: str, facts: Facts) -> Report:
    """Ask every question that can be asked; those about the work of each tenant."""
    asked: list[tuple[str, str | None, Found]] = [
        (check.name, None, found)
        for check in (PLACE_CHECKS if facts.server is None else SERVER_CHECKS)
        if (found := check.ask(facts)) is not None
    ]
    for work in facts.work:
        named = None if work.tenant == facts.tenant else work.tenant
        asked += [(check.name, work.tenant, check.ask(work, named)) for check in WORK_CHECKS]
    several = len(facts.work) + len(facts.others) > 1 or any(one.tenant != facts.tenant for one in facts.work)
    return Report(
        place=place,
        findings=[
            Finding(
                check=name, tenant=tenant, fix=one.fix, detail=one.detail,
                evidence=f"tenant {tenant}: {one.evidence}" if several and tenant is not None else one.evidence,
            )
            for name, tenant, found in asked
            for one in found.problems
        ],
        checks=[
            Seen(check=name, seen=found.seen, ok=not found.problems, tenant=tenant) for name, tenant, found in asked
        ],
    )  # fmt: skip
