"""`relet doctor`: what is amiss, why that is said, and what to do."""

from __future__ import annotations

from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, pairs
from relet.core.doctor.report import Report


@verb("doctor", example="relet doctor")
def doctor(session: Session) -> Exit:
    """Examine a store: its file, disk and clock, who has it open, and the work in it.

    Each finding comes with what was seen and with what to do about it; then the exit code is 8. Nothing is repaired,
    and a store that does not exist is not made. Without findings it prints what it looked at.
    """
    from relet.connect import diagnose

    report = diagnose(session.value("url"), session.value("tenant"))
    if session.json:
        session.answer(report)
    elif report.findings:
        session.data(_told(report))
    else:
        session.data(f"all is well with {clean(report.place)}")
        session.data(pairs([(one.check, clean(one.seen)) for one in report.checks]))
    return Exit.FINDINGS if report.findings else Exit.OK


def _told(report: Report) -> str:
    count = len(report.findings)
    lines = [f"{count} finding{'' if count == 1 else 's'} in {clean(report.place)}"]
    for one in report.findings:
        lines += [f"{one.check}: {clean(one.evidence)}", f"    → {clean(one.fix)}"]
    well = [one.check for one in report.checks if one.ok]
    return "\n".join([*lines, f"well: {', '.join(well)}"])
