"""copy: a store leaves one engine for another, whole or not at all, and nobody ever works on both.

Four steps, each of them durable before the next: rows are copied to where nobody may use them yet; all of them are
checked there; the store that they come from gives itself up for good; the new one is opened. Cut before the third it
starts anew, and whoever uses the old store never notices; cut after it, only the opening is left to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from relet.core import limits
from relet.core.errors import Conflict, Error
from relet.core.pasting import command
from relet.core.upkeep import Finding, Verified

TABLES: Final = (
    "tasks", "inputs", "leases", "late_beats", "checkpoints", "events", "queues", "totals", "tombstones",
    "rejections", "rejection_counts", "steps", "waits", "signals", "artifacts", "effects", "evidence",
    "api_keys", "api_audit", "api_audit_end",
)  # fmt: skip
"""What a store is, in the order in which it is copied. A table has a statement of its name in each engine, with the
same columns in the same order."""
NUMBERED: Final = ("tasks", "events", "rejections", "waits", "signals", "artifacts", "effects", "evidence")
"""Tables that number their rows; the next number is larger than any that was ever given."""
BYTES_RULE: Final = "bytes-are-there"
Row = tuple[Any, ...]
Told = Callable[[str, int], None]
"""Is told what is being done, and how much of it is done."""


class Brought(NamedTuple):
    """What became of stored bytes that a store names."""

    named: int = 0
    copied: int = 0
    bytes: int = 0
    missing: tuple[str, ...] = ()
    """Addresses of those that are nowhere, or are not what they are named for; a long list is cut."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that lives."""

    tenant: str
    task: str
    holder: str
    left_ms: int


class Gone(NamedTuple):
    """What a store that has given itself up says of it."""

    place: str
    epoch: int
    """In which the other one went on."""
    wall_ms: int


class Back(NamedTuple):
    """What was, or would be, taken back."""

    place: str
    """Where the copy is, which nobody may use."""
    epoch: int
    """In which it was made."""
    wall_ms: int | None
    """When that was; None where it was taken back before."""
    already: bool
    """The source is in use, and the copy is shut: there was nothing left to do."""


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or would be, copied."""

    source: str
    place: str
    rows: dict[str, int]
    """How many rows, by table."""
    artifacts: int
    """Stored bytes that it names; 0 where they were not looked for."""
    artifacts_copied: int
    artifacts_bytes: int
    artifacts_at: str | None
    """Where they are now; None where they were not looked for."""
    epoch: int
    tokens_above: int
    """Every token from now on is larger than this one, and than all that were ever given out."""
    lapsed: int
    """Leases that had expired, and that nobody had looked at."""
    findings: list[Finding]
    """What does not hold; the store was not moved then, and all is as it was."""
    more: bool
    dry_run: bool
    finished: bool
    """Only the last step was left: the copy was made by an earlier run."""
    held: list[Held]
    """With dry_run: leases that live, which keep a store from being copied."""
    refused: list[Error]
    """With dry_run: what it would be refused for, the first of which it would end with."""

    @property
    def ok(self) -> bool:
        """Nothing was found."""
        return not self.findings


class Leaving(Protocol):
    """A store that is copied, in the hands of this process alone."""

    place: str
    address: str
    """The URL that commands take."""
    store_id: str
    secret_key: bytes
    lapsed: int

    def check_alone(self) -> None:
        """For a look beside whoever uses it. Raises `Conflict` where somebody does."""

    def gone(self) -> Gone | None:
        """Has it given itself up."""

    def held(self) -> list[Held]:
        """Leases that have not ended; one with no time left has only to be looked at."""

    def counts(self) -> dict[str, int]:
        """How many rows each table has."""

    def verified(self) -> Verified:
        """What does not hold of its rows."""

    def named(self) -> Iterator[str]:
        """The addresses of stored bytes that it names."""

    def access(self) -> Row:
        """How many API keys it has, how many of them are revoked, and the last line of the audit log."""

    def now_ms(self) -> int:
        """Its time."""

    def rows(self, table: str, ahead_ms: int) -> Iterator[Row]:
        """All rows of a table, with `ahead_ms` added to each instant of store time."""

    def numbers(self) -> dict[str, int]:
        """The largest number that each table of `NUMBERED` has ever given."""

    def epoch_above(self, least: int) -> int:
        """An epoch above `least` and all of this store."""

    def give_up(self, place: str, epoch: int) -> None:
        """Nobody writes here any more, durably."""

    def take_back(self, epoch: int) -> None:
        """It goes on here, in an epoch of its own."""


class Arriving(Protocol):
    """A place for a store, which this process prepares."""

    place: str
    """The URL that commands take, without a secret."""

    def is_there(self) -> bool:
        """Is a store in the place, usable or not."""

    def is_of(self, store_id: str) -> bool:
        """Is it this store, or a copy of it."""

    def is_shut(self) -> bool:
        """May nobody use it yet."""

    def is_named(self, place: str) -> bool:
        """Is it this place, whoever asks for it."""

    def epoch(self) -> int:
        """Of what is there; 0 where nothing is."""

    def check(self, source: Leaving) -> None:
        """Raises what `shut_for` would, and changes nothing."""

    def shut_for(self, source: Leaving) -> None:
        """Make it the place of this store, which nobody may use. Raises `Conflict` where another store is."""

    def fill(self, source: Leaving, epoch: int, told: Told) -> dict[str, int]:
        """All of its rows, in place of whatever an earlier run has left; answers how many, by table."""

    def verified(self) -> Verified:
        """What does not hold of them."""

    def open(self) -> None:
        """From now on everybody may use it, durably."""

    def has_worked(self, last_event: int, access: Row) -> bool:
        """Has anything become of a task after this event, or of what `Leaving.access` answers."""

    def shut(self, place: str) -> None:
        """Nobody may use it any more, durably: the store goes on in `place`. Open transactions end first."""


def copy(source: Leaving, target: Arriving, bring: Callable[[Iterator[str]], Brought], told: Told) -> Copied:
    """Move the store. With findings it stays where it is."""
    if (gone := source.gone()) is not None:
        return _finished(source, target, gone)
    _refuse_held(source, source.held())
    target.check(source)
    told("checking the source", 0)
    if not (found := source.verified()).ok:
        return _answer(source, target, findings=found.findings, more=found.more)
    told("stored bytes", 0)
    brought = bring(source.named())
    if brought.missing:
        return _answer(source, target, brought=brought, findings=lost(brought))
    target.shut_for(source)
    epoch = source.epoch_above(target.epoch())
    rows = target.fill(source, epoch, told)
    told("checking the copy", 0)
    found = target.verified()
    missing = _miscounted(source.counts(), rows)
    if missing or not found.ok:
        return _answer(source, target, rows=rows, findings=[*missing, *found.findings], more=found.more)
    told("giving up the source", 0)
    source.give_up(target.place, epoch)
    told("opening the copy", 0)
    target.open()
    return _answer(source, target, rows=rows, brought=brought, epoch=epoch)


def plan(source: Leaving, target: Arriving, bring: Callable[[Iterator[str]], Brought]) -> Copied:
    """What `copy` would do; nothing is changed anywhere."""
    if (gone := source.gone()) is not None:
        refused = _refusals(source.check_alone, lambda: _refuse_other_copy(source, target, gone))
        answer = _answer(source, target, epoch=gone.epoch)
        return msgspec.structs.replace(answer, dry_run=True, finished=not refused, refused=refused)
    brought, found = bring(source.named()), source.verified()
    answer = _answer(
        source, target, rows=source.counts(), brought=brought, findings=[*lost(brought), *found.findings],
        more=found.more, epoch=source.epoch_above(target.epoch()),
    )  # fmt: skip
    held = source.held()
    live = [one for one in held if one.left_ms]
    refused = _refusals(source.check_alone, lambda: _refuse_held(source, live), lambda: target.check(source))
    return msgspec.structs.replace(answer, dry_run=True, held=live, lapsed=len(held) - len(live), refused=refused)


def back(source: Leaving, target: Arriving, *, dry_run: bool = False) -> Back:
    """Undo a copy, or say what would be undone. Raises `Conflict` where somebody has worked with it."""
    gone = source.gone()
    if gone is None:
        return _back_already(source, target)
    if dry_run:
        source.check_alone()
    if target.is_there() and target.is_of(source.store_id):
        if not dry_run:
            target.shut(source.place)
        if target.has_worked(source.numbers()["events"], source.access()):
            if not dry_run:
                target.open()
            raise Conflict(
                f"work went on in {target.place} since the store was copied; going back to {source.place} would lose "
                "it. Nothing was changed. Move it forward only",
                code="RELET-COPIED", place=target.place,
            )  # fmt: skip
    elif not target.is_named(gone.place):
        raise Conflict(
            f"{source.place} was copied to {gone.place}, and {target.place} holds nothing of it; name that one",
            code="RELET-OTHER-STORE", place=gone.place,
        )  # fmt: skip
    if not dry_run:
        source.take_back(source.epoch_above(max(gone.epoch, target.epoch())))
    return Back(*gone, already=False)


def _back_already(source: Leaving, target: Arriving) -> Back:
    if target.is_there() and target.is_of(source.store_id) and target.is_shut():
        return Back(target.place, target.epoch(), None, already=True)
    raise Conflict(
        f"{source.place} is in use: it was not copied anywhere, or is back already; and {target.place} holds no copy "
        "that was taken back from there. Nothing was changed",
        code="RELET-CONFLICT", place=source.place,
    )  # fmt: skip


def went_on(became: str, place: str, wall_ms: int) -> str:
    """What everybody is told who comes to the place that a store has left."""
    at = datetime.fromtimestamp(wall_ms / 1_000, UTC)
    return f"{became} {place} on {at:%Y-%m-%d at %H:%M} UTC, and goes on there"


def lost(brought: Brought) -> list[Finding]:
    """Bytes that are not to be had, as findings."""
    text = "it is named, and not stored where the source has its bytes"
    return [Finding(rule=BYTES_RULE, row=uri, text=text) for uri in brought.missing]


def _finished(source: Leaving, target: Arriving, gone: Gone) -> Copied:
    """An earlier run was cut before the last step, or was not."""
    _refuse_other_copy(source, target, gone)
    if target.is_shut():
        target.open()
    return msgspec.structs.replace(_answer(source, target, rows=source.counts(), epoch=gone.epoch), finished=True)


def _refuse_other_copy(source: Leaving, target: Arriving, gone: Gone) -> None:
    if not target.is_there() or not target.is_of(source.store_id) or target.epoch() < gone.epoch:
        back = command("copy", source.address, gone.place, options=("--back",))
        raise Conflict(
            f"{source.place} was copied to {gone.place} and goes on there, and {target.place} holds no such copy. If "
            f"that one is lost, and nobody has worked with it → {back}",
            code="RELET-COPIED", place=gone.place,
        )  # fmt: skip


def _refusals(*checks: Callable[[], None]) -> list[Error]:
    found = []
    for check in checks:
        try:
            check()
        except Error as refused:
            found.append(refused)
    return found


def _refuse_held(source: Leaving, held: list[Held]) -> None:
    if held:
        first = held[0]
        others = f", and {len(held) - 1} more" if len(held) > 1 else ""
        raise Conflict(
            f"{source.place}: {first.holder} holds task {first.task} of {first.tenant} for another "
            f"{first.left_ms / 1_000:.1f} s{others}; nothing was copied. End the programs that work on it, and wait "
            "until their leases have ended; see → relet ls --state leased",
            code="RELET-IN-USE", held=msgspec.to_builtins(held[: limits.PAGE_ITEMS]),
        )  # fmt: skip


def _miscounted(counts: dict[str, int], rows: dict[str, int]) -> list[Finding]:
    return [
        Finding(rule="all-rows-are-there", row=table, text=f"{rows.get(table, 0)} of {n} rows were copied")
        for table, n in counts.items()
        if rows.get(table, 0) != n
    ]


def _answer(
    source: Leaving, target: Arriving, *, rows: dict[str, int] | None = None, brought: Brought | None = None,
    findings: list[Finding] | None = None, more: bool = False, epoch: int = 0,
) -> Copied:  # fmt: skip
    brought = brought or Brought()
    return Copied(
        source=source.place, place=target.place, rows=rows or {}, artifacts=brought.named,
        artifacts_copied=brought.copied, artifacts_bytes=brought.bytes, artifacts_at=None, epoch=epoch,
        tokens_above=epoch << limits.TOKEN_BITS, lapsed=source.lapsed,
        findings=(findings or [])[: limits.FINDINGS_MAX], more=more, dry_run=False, finished=False, held=[],
        refused=[],
    )  # fmt: skip
