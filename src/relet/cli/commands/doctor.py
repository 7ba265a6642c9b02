"""`relet doctor`: what is amiss, why that is said, and what to do."""

from __future__ import annotations

from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, pairs
from relet.core.doctor.report import Report


@verb("doctor", example="relet doctor")
def doctor(session: Session) -> Exit:
    """Examine a store, what it stands on, and the work in it.

    Of a file that is its disk, its clock, and who has it open; of a database the server: what it keeps on disk, its
    clock, its role, tables that grow, transactions that are left open, and the way there.

    It looks at the work of all tenants; with --tenant at that of one alone, and names the others. Each finding comes
    with what was seen and with what to do about it; then the exit code is 8. Nothing is repaired, and a store that is
    not there is not made. Without findings it prints what it looked at.
    """
    from relet.connect import diagnose

    tenant = session.value("tenant")
    alone = "tenant" in session.given
    report = diagnose(session.value("url"), tenant, alone=alone)
    if session.json:
        session.answer(report)
    elif report.findings:
        session.data(_told(report))
    else:
        session.data(f"all is well with {f'tenant {clean(tenant)} in ' if alone else ''}{clean(report.place)}")
        session.data(_seen(report))
    return Exit.FINDINGS if report.findings else Exit.OK


def _seen(report: Report) -> str:
    """What each check looked at; that of several tenants under their names."""
    tenants = list(dict.fromkeys(one.tenant for one in report.checks))
    groups = {
        tenant: pairs([(one.check, clean(one.seen)) for one in report.checks if one.tenant == tenant])
        for tenant in tenants
    }
    if len(tenants) <= 2:  # noqa: PLR2004 - the place, and the only tenant
        return "\n".join(groups.values())
    return "\n".join(f"tenant {clean(name)}\n{text}" if name is not None else text for name, text in groups.items())


def _told(report: Report) -> str:
    count = len(report.findings)
    lines = [f"{count} finding{'' if count == 1 else 's'} in {clean(report.place)}"]
    for one in report.findings:
        lines += [f"{one.check}: {clean(one.evidence)}", f"    → {clean(one.fix)}"]
    amiss = {one.check for one in report.checks if not one.ok}
    well = [name for name in dict.fromkeys(one.check for one in report.checks) if name not in amiss]
    if well:
        lines.append(f"well: {', '.join(well)}")
    return "\n".join(lines)
