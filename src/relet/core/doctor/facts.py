"""What findings are made of: the file, the machine, the processes that have it open, the work in it."""

from __future__ import annotations

import msgspec

from relet.core.doctor.condition import Condition
from relet.core.doctor.moved import Moved
from relet.core.doctor.server_facts import ServerFacts


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A store's file, looked at without changing it."""

    path: str
    exists: bool
    file_system: str
    free_bytes: int | None = None
    wal_bytes: int = 0
    open_to_others: list[str] = []
    """What of it others than its owner may read or write."""
    journal_mode: str | None = None
    synchronous: int | None = None
    """Of a connection as relet opens it for what must last; 2 is FULL."""
    schema: int | None = None
    knows_schema: int = 0
    """The one that this relet reads and writes."""
    moved: Moved | None = None
    """None while its store is here."""


class ClockFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Which clock the store goes by, and which run of which machine it belongs to; empty where nobody tells."""

    source: str
    boot_id: str
    machine_id: str
    time_namespace: str
    store_boot_id: str | None = None
    store_machine_id: str | None = None
    store_time_namespace: str | None = None


class StateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of token marks, outside of what is backed up."""

    folder: str
    exists: bool
    writable: bool
    store_id: str | None = None
    has_mark: bool = False
    """Of this store."""


class ProcessFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A process that has the store open."""

    pid: int
    command: str
    engines: int
    """Copies of SQLite in it that have the store's log open."""


class PlaceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a store stands on."""

    engine: str
    """The version of SQLite."""
    engine_trouble: str | None
    file: FileFacts | None
    """None for a store in memory."""
    clock: ClockFacts
    state: StateFacts | None = None
    processes: list[ProcessFacts] | None = None
    """None where the platform does not tell."""


NOWHERE = PlaceFacts(
    engine="", engine_trouble=None, file=None,
    clock=ClockFacts(source="", boot_id="", machine_id="", time_namespace=""),
)  # fmt: skip
"""On this machine: of a store that is a server's."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that findings are made of."""

    place: PlaceFacts = NOWHERE
    server: ServerFacts | None = None
    """In place of `place`, for the store of a server."""
    refused: str | None = None
    """Why the store cannot be opened, if it cannot."""
    work: list[Condition] = []
    """Of each tenant that was looked at; none when it cannot be opened."""
    tenant: str = "default"
    """Whose commands name no tenant: the one that was asked for, or that is set."""
    alone: bool = False
    """Was that tenant asked for, and no other."""
    others: list[str] = []
    """Tenants that were not looked at, as far as they are known."""

    @property
    def moved(self) -> Moved | None:
        """Has the store left this place: nobody works on it here, whatever is in it."""
        if self.server is not None:
            return self.server.moved
        return None if self.place.file is None else self.place.file.moved
