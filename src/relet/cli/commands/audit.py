"""`relet audit`: who did what through the service, and whom it kept out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

import click
import msgspec

from relet.cli.colour import Paint
from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.settings import DEFAULT
from relet.cli.words import clean, now_utc, table, when
from relet.core import limits

if TYPE_CHECKING:
    from relet.client.audit_asks import Read, Wanted
    from relet.core.backend import Audited, Operated
    from relet.core.rules.audit import AuditEntry

HEAD: Final = ("SEQ", "AT", "KEY", "TENANT", "OPERATION", "TARGET", "OUTCOME", "FROM")
KEPT: Final = f"{limits.AUDIT_KEPT_MS // limits.DAY_MS} days"


@verb(
    "audit",
    example="""relet audit --since 24h --outcome RELET-FORBIDDEN
relet audit --key ci --operation cancel --json
relet audit --verify
relet audit --prune --older 365d --dry-run""",
)
@click.option("--since", metavar="DURATION", help="Only of the last so long.")
@click.option("--operation", metavar="NAME", help="Only of this operation.")
@click.option("--key", metavar="KEY", help="Only what was done with this key: its id, or its name.")
@click.option("--outcome", metavar="CODE", help="Only with this outcome: ok, or the code of an error.")
@click.option("--limit", type=click.IntRange(1), default=100, help="At most so many.  [default: 100]")
@click.option("--before", metavar="SEQ", type=int, help="Go on before this line, the last of the page before.")
@click.option("--after", metavar="SEQ", type=int, help="Oldest first, from after this line; 0 for the first.")
@click.option("--verify", is_flag=True, help="Walk the chain of the lines, and say where it does not hold.")
@click.option("--prune", is_flag=True, help="Remove the oldest lines, those of --older.")
@click.option("--older", metavar="DURATION", help="With --prune: lines that were written so long ago.")
@click.option("--recent-too", is_flag=True, help=f"With --prune: also where that is less than {KEPT}.")
@click.option("--dry-run", is_flag=True, help="With --prune: say how many, and change nothing.")
def audit(
    session: Session, limit: int, before: int | None, after: int | None, verify: bool, prune: bool,
    older: str | None, recent_too: bool, dry_run: bool, **wanted: str | None,
) -> Exit:  # fmt: skip
    """Read the log of what few may do, and of whom the service kept out; newest first.

    Of a store all tenants are shown, or the one that is set; of a service that of the key, which needs the scope
    audit. With --verify the exit code is 8 where the chain does not hold. What is pruned is told of in the log
    itself, so that the rest can be verified as before.
    """
    _together(
        verify=verify, prune=prune, filters=[*wanted.values(), before, after],
        pruning={"older": older, "recent_too": recent_too, "dry_run": dry_run},
    )  # fmt: skip
    if verify or prune:
        with _store(session) as store:
            if verify:
                return _verify(session, store)
            return _prune(session, store, older, recent_too=recent_too, dry_run=dry_run)
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


def _prune(session: Session, store: Operated, older: str | None, *, recent_too: bool, dry_run: bool) -> Exit:
    from relet.client.audit_asks import prune_audit, pruned

    found = pruned(store.operate, prune_audit(older, recent_too=recent_too, dry_run=dry_run))
    if session.json:
        session.answer({**msgspec.structs.asdict(found), "dry_run": dry_run})
    elif not found.removed:
        session.empty("no line is so old")
    elif dry_run:
        session.talk(f"would remove {found.removed} lines, up to {found.upto}; nothing was changed")
    else:
        session.data(f"removed {found.removed} lines, up to {found.upto}")
    if found.more:
        session.talk("there are more that are as old → the same command again")
    return Exit.OK


@contextmanager
def _store(session: Session) -> Iterator[Operated]:
    from relet.connect import operated_at

    session.watch()
    with operated_at(session.value("url"), service="shows its log and does nothing else with it") as store:
        session.place = store.place
        yield store


@contextmanager
def _reading(session: Session) -> Iterator[Read]:
    from relet.connect import is_service

    if not is_service(session.value("url")):
        with _store(session) as store:
            yield store.operate
        return
    yield cast("Audited", session.backend()).audit


def _together(*, verify: bool, prune: bool, filters: list[Any], pruning: dict[str, Any]) -> None:
    if verify and prune:
        raise _misplaced("verify", "goes without --prune")
    if (verify or prune) and any(value is not None for value in filters):
        raise _misplaced("verify" if verify else "prune", "is of the whole log, without other options")
    if not prune and (alone := next((name for name, value in pruning.items() if value), None)) is not None:
        raise _misplaced(alone, "goes with --prune")
    if prune and pruning["older"] is None:
        raise _misplaced("prune", "needs to know what is old → relet audit --prune --older 365d --dry-run")


def _misplaced(field: str, why: str) -> Exception:
    from relet.core.border import invalid

    return invalid(field, why)
