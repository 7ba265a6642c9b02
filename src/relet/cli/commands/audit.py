"""`relet audit`: who did what through the service, and whom it kept out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from relet.cli.colour import Paint
from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.settings import DEFAULT
from relet.cli.words import clean, now_utc, table, when

if TYPE_CHECKING:
    from relet.client.audit_asks import Read, Wanted
    from relet.core.backend import Operated
    from relet.core.rules.audit import AuditEntry

HEAD: Final = ("SEQ", "AT", "KEY", "TENANT", "OPERATION", "TARGET", "OUTCOME", "FROM")


@verb(
    "audit",
    example="""relet audit --since 24h --outcome RELET-FORBIDDEN
relet audit --key ci --operation cancel --json
relet audit --verify
relet audit --prune-before 365d --dry-run""",
)
@click.option("--since", metavar="DURATION", help="Only of the last so long.")
@click.option("--operation", metavar="NAME", help="Only of this operation.")
@click.option("--key", metavar="KEY", help="Only what was done with this key: its id, or its name.")
@click.option("--outcome", metavar="CODE", help="Only with this outcome: ok, or the code of an error.")
@click.option("--limit", type=click.IntRange(1), default=100, help="At most so many.  [default: 100]")
@click.option("--before", metavar="SEQ", type=int, help="Go on before this line, the last of the page before.")
@click.option("--after", metavar="SEQ", type=int, help="Oldest first, from after this line; 0 for the first.")
@click.option("--verify", is_flag=True, help="Walk the chain of the lines, and say where it does not hold.")
@click.option("--prune-before", metavar="AGE", help="Remove the lines that are so old.")
@click.option("--early", is_flag=True, help="With --prune-before: those of the last 30 days, too.")
@click.option("--dry-run", is_flag=True, help="With --prune-before: say how many, and change nothing.")
def audit(
    session: Session, limit: int, before: int | None, after: int | None, verify: bool, prune_before: str | None,
    early: bool, dry_run: bool, **wanted: str | None,
) -> Exit:  # fmt: skip
    """Read the log of what few may do, and of whom the service kept out; newest first.

    Of a store all tenants are shown, or the one that is set; of a service that of the key, which needs the scope
    audit. With --verify the exit code is 8 where the chain does not hold. What is pruned is told of in the log
    itself, so that the rest can be verified as before.
    """
    if verify or prune_before is not None:
        _alone(verify=verify, filters=[*wanted.values(), before, after], pruning=[prune_before, early, dry_run])
        with _store(session) as store:
            if verify:
                return _verify(session, store)
            return _prune(session, store, prune_before, early=early, dry_run=dry_run)
    if early or dry_run:
        raise _misplaced("early" if early else "dry_run", "goes with --prune-before")
    with _reading(session) as read:
        _show(session, read, _wanted(wanted), limit, before, after)
    return Exit.OK


def _wanted(given: dict[str, str | None]) -> Wanted:
    from relet.client.audit_asks import Wanted
    from relet.core import border

    since = border.maybe_duration_ms("since", given.pop("since"))
    return Wanted(**given, since=None if since is None else now_utc() - timedelta(milliseconds=since))


def _show(
    session: Session, read: Read, wanted: Wanted, limit: int, before: int | None, after: int | None
) -> None:  # fmt: skip
    from relet.client.audit_asks import lines_of, list_audit

    ask = list_audit(_tenant(session), before, after)
    found = list(islice(lines_of(read, ask, wanted), limit))
    following = found[-1].seq if len(found) == limit else None
    if session.json:
        session.answer({"lines": found, "next": following})
    elif found:
        session.data(table(HEAD, [_row(line) for line in session.seen(found)], Paint(session.color)))
        if following is not None:
            session.talk(f"there may be more → --{'before' if after is None else 'after'} {following}")
    if not found:
        session.empty("no such line of the audit log")


def _tenant(session: Session) -> str | None:
    """The one that somebody has set, for this command or for all; else every tenant's lines, and nobody's."""
    effective = session.settings.effective("tenant")
    return None if effective.origin == DEFAULT else effective.value


def _row(line: AuditEntry) -> tuple[str, ...]:
    key = "-" if line.key_id is None else f"{clean(line.key_name)} ({line.key_id})"
    tenant, target, address = (clean(told or "-") for told in (line.tenant, line.target, line.address))
    return (str(line.seq), when(line.at), key, tenant, clean(line.operation), target, line.outcome, address)


def _verify(session: Session, store: Operated) -> Exit:
    found = store.verify_log()
    if session.json:
        session.answer(msgspec.structs.asdict(found))
    else:
        for finding in found.findings:
            session.data(clean(f"{finding.row}: {finding.text}"))
        said = "the chain holds" if found.ok else "the chain does not hold" + (", and more" if found.more else "")
        session.talk(
            f"{found.place}: {found.lines} lines: {said}. The last one is {found.last}, and its digest "
            f"{found.digest or '-'}; kept elsewhere, they tell whether the log was written anew"
        )
    return Exit.OK if found.ok else Exit.FINDINGS


def _prune(session: Session, store: Operated, age: str | None, *, early: bool, dry_run: bool) -> Exit:
    from relet.client.audit_asks import prune_audit

    ask = prune_audit(age, early=early, dry_run=dry_run)
    removed, upto = 0, None
    while True:
        batch = store.operate(ask)
        removed, upto = removed + batch.removed, batch.upto or upto
        if not batch.more:
            break
        if dry_run:
            ask = msgspec.structs.replace(ask, after=batch.upto)
    if session.json:
        session.answer({"removed": removed, "upto": upto, "dry_run": dry_run})
    elif not removed:
        session.empty("no line is so old")
    elif dry_run:
        session.talk(f"would remove {removed} lines, up to {upto}; nothing was changed")
    else:
        session.data(f"removed {removed} lines, up to {upto}")
    return Exit.OK


@contextmanager
def _store(session: Session) -> Iterator[Operated]:
    from relet.connect import HTTP, operated_at

    session.watch()
    if session.value("url").partition(":")[0] in HTTP:
        raise _misplaced(
            "url",
            "is a service, which shows its log and does nothing else with it. Name the store that it serves, where "
            "that can be reached → --url sqlite:///work.db or --url postgresql://host/database",
        )
    with operated_at(session.value("url")) as store:
        session.place = store.place
        yield store


@contextmanager
def _reading(session: Session) -> Iterator[Read]:
    from relet.connect import HTTP

    if session.value("url").partition(":")[0] not in HTTP:
        with _store(session) as store:
            yield store.operate
        return
    service: Any = session.backend()
    yield service.audit


def _alone(*, verify: bool, filters: list[Any], pruning: list[Any]) -> None:
    if any(value is not None for value in filters):
        raise _misplaced("verify" if verify else "prune_before", "is of the whole log, without other options")
    if verify and any(pruning):
        raise _misplaced("verify", "goes without --prune-before")


def _misplaced(field: str, why: str) -> Exception:
    from relet.core.border import invalid

    return invalid(field, why)
