"""What findings about a server's store are made of; None stands for what could not be found out."""

from __future__ import annotations

import msgspec

from relet.core.doctor.moved import Moved


class TableFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One table, as the server's statistics tell of it."""

    name: str
    live: int
    dead: int
    """Versions of rows that nobody sees any more, and that are still read past."""
    bytes: int
    index_bytes: int
    is_vacuumed: bool = True
    """May the server clean it by itself."""


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction that has been open for a while: of a session, or prepared by one that is gone."""

    pid: int | None
    name: str
    """The program that it says it is, else its user; of a prepared transaction its name."""
    open_s: int
    is_idle: bool
    holds_back: bool
    """Keeps versions of rows from being cleaned."""
    tables: list[str] = []
    """Those of the store that it has locked."""


class SchemaFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a store."""

    version: int
    knows: int
    """The schema that this relet reads and writes."""
    min_writer: int
    raises_to: int
    """Whom this relet lets write once no older client is left."""
    is_shut: bool = False
    """May nobody use it: a copy is not complete, or was taken back."""
    missing: list[str] = []
    """Tables that should be there."""
    invalid: list[str] = []
    """Indexes that were begun, and not finished."""
    untuned: list[str] = []
    """Settings of tables that are not in place."""


class RightsFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the role may do by which relet comes, whatever its server can."""

    role: str
    database: str
    """Both as a statement names them."""
    may_make: bool = True
    """A store where there is none."""
    read_only_by: str | None = None
    """Where it was set that transactions write nothing, as PostgreSQL calls it; None where they may."""
    not_granted: list[str] = []
    """Tables and sequences of the store that it may not read, or not write."""


class ServerClockFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The server's clock against that of this machine."""

    off_ms: float
    """How far it is ahead, give or take `within_ms`."""
    within_ms: float
    ahead_ms: int = 0
    """What is added to it to make store time, since it was seen to be stepped."""
    steps: int = 0


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A server, and the store in one schema of a database of it."""

    place: str
    version: int | None = None
    least_version: int = 0
    schema_name: str = "relet"
    schema: SchemaFacts | None = None
    """None where there is no store, or it cannot be read."""
    moved: Moved | None = None
    """None while the store is here."""
    is_standby: bool | None = None
    standbys: list[str] = []
    """Those that follow it, each with how: sync, async."""
    rights: RightsFacts | None = None
    settings: dict[str, str] = {}
    own_session: bool = True
    """Or is there a pooler, which gives out sessions of its own."""
    listens: bool = True
    skips_locked: bool = True
    knows_its_run: bool = True
    without: list[str] = []
    """Abilities that are forbidden, whatever the server has."""
    clock: ServerClockFacts | None = None
    tables: list[TableFacts] = []
    sessions: list[SessionFacts] = []
    sees_others: bool = True
    """May this role see what sessions of other roles do."""
    connections: int | None = None
    connections_most: int = 0
    names_artifacts: bool = False
    """Are bytes named that lie outside of the database."""
    artifacts: str | None = None
    """The place that all machines share; None for a folder of this one."""
