"""The nouns of whoever looks after a store: what was verified, found, backed up, restored, migrated and pruned."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that does not hold: its name, the row that breaks it, and what is there against what should be."""

    rule: str
    row: str
    text: str


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, all of it as it stood at one moment, and what was found."""

    place: str
    tasks: int
    leases: int
    events: int
    artifacts: int
    """Stored bytes that something names, and that were looked for."""
    findings: list[Finding]
    more: bool
    """The list was cut at its limit: there is more to find."""
    artifacts_at: str | None = None
    """Where the stored bytes were looked for; None where none were."""

    @property
    def ok(self) -> bool:
        """Nothing was found."""
        return not self.findings


class VerifiedLog(msgspec.Struct, frozen=True, kw_only=True):
    """The audit log as it stood at one moment, and where its chain does not hold."""

    place: str
    lines: int
    last: int
    """The number of the last line, which grows for ever."""
    digest: str
    """And its digest, of all lines up to it: whoever keeps it elsewhere can tell later whether any was altered."""
    findings: list[Finding]
    more: bool
    """The list was cut at its limit: there is more to find."""

    @property
    def ok(self) -> bool:
        """Nothing was found."""
        return not self.findings


class BackedUp(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a store, as it stood at one moment; it is on disk, and was verified there."""

    place: str
    """The store."""
    backup: str
    bytes: int
    tasks: int
    artifacts: int
    """Stored bytes that it names, and that are not in it."""
    artifacts_at: str | None
    """Where those are."""


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A store that goes on from a backup."""

    place: str
    backup: str
    replaced: str | None
    """The file that was there before, under its name of now; or its log, where only that was left."""
    epoch: int
    tokens_above: int
    """Every token from now on is larger than this one, and than all that were ever given out."""
    lapsed: int
    """Leases that were open in the backup; nobody holds them any more."""
    unknown: int
    """Effects that were under way in the backup: their outcome is not known."""
    artifacts: int = 0
    """Stored bytes that something names, and that were looked for."""
    missing: list[str] = []
    """Addresses of those that are not there; a long list is cut."""
    more: bool = False
    """It was cut."""
    artifacts_at: str | None = None
    """Where they were looked for, and belong; None where they were not."""


class Migrated(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or would be, done to the schema of a store."""

    place: str
    was: int
    schema: int
    steps: list[str]
    backup: str | None
    """The verified copy of the store as it was; None where it is migrated beside its clients."""
    dry_run: bool
    left: list[str] = []
    """Steps that wait until no client of an older schema is left."""
