"""Versions of this engine's schema, and who may use a store of which."""

from __future__ import annotations

from typing import Final

from relet.core.errors import DAMAGED, Unavailable
from relet.store import migrate
from relet.store.migrate import CLOSED

SCHEMA: Final = 1
"""The schema that this relet reads and writes on PostgreSQL; counted apart from the embedded engine's."""
MIN_READER: Final = 1
"""The oldest relet, by its schema, that may read a store of this schema."""
MIN_WRITER: Final = 1


def check_writer(min_writer: int) -> None:
    """Refuse to write into a store that has been migrated past this relet, under its open client even."""
    if min_writer > SCHEMA:
        check_open("this store", min_writer)
        migrate.check_writer(min_writer, SCHEMA)


def check_version(place: str, version: int, min_reader: int) -> None:
    """Refuse a store whose schema this relet cannot read, or one that is older and not yet migrated."""
    check_open(place, min_reader)
    migrate.check_version(
        place, version, min_reader, SCHEMA, "Bring it up to date, its programs may go on meanwhile → relet migrate"
    )


def row_gone(place: str) -> Unavailable:
    """The one row is not there that says which store this is."""
    return Unavailable(f"{place}: the store's own row is gone; restore a backup", code=DAMAGED)


def check_open(place: str, least: int) -> None:
    """Refuse a store that is being copied here from elsewhere: half of one looks like a whole one."""
    if least >= CLOSED:
        raise Unavailable(
            f"{place} is being filled with a copy of another store, or one was taken back from it: nobody may use it "
            "before a copy is complete. If none is being made just now, go on with it → relet copy",
            code="RELET-COPYING",
        )  # fmt: skip
