"""Apply numbered files to a store, once each and in order; refuse an unknown future."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from relet.core.errors import UpgradeRequired
from relet.store.statements import folder_of

SCHEMA: Final = 7
"""The schema that this relet reads and writes."""
MIN_READER: Final = 1
"""The oldest relet, by its schema, that may read a store of this schema; the one before this can."""
MIN_WRITER: Final = 1
"""And that may write into it: what was added since has defaults, and is kept in order by triggers."""
CLOSED: Final = 1_000_000_000
"""In place of either: nobody may, of whatever release; no schema gets there. See copying.py."""
ALONE: Final = "End every program that uses it, then bring it up to date → relet migrate"
_FILE = re.compile(r"(\d{4})_\w+\.sql")


class Migration(NamedTuple):
    """One numbered step."""

    number: int
    name: str
    text: str


def migrations(package: str, schema: int) -> list[Migration]:
    """The steps of an engine, 1 to `schema` without a gap. Raises LookupError otherwise."""
    found = sorted(
        Migration(int(match[1]), item.name, item.read_text(encoding="utf-8"))
        for item in folder_of(package).joinpath("migrations").iterdir()
        if (match := _FILE.fullmatch(item.name))
    )
    if [step.number for step in found] != list(range(1, schema + 1)):
        raise LookupError(f"{package}: migrations {[step.name for step in found]} do not lead to {schema}")
    return found


def check_writer(min_writer: int, schema: int | None = None) -> None:
    """Refuse to write into a store that has been migrated past this relet, under its open client even.

    `schema` is what this relet has on the engine of the store; None means the embedded one.
    """
    schema = SCHEMA if schema is None else schema
    if min_writer > schema:
        raise UpgradeRequired(
            f"this store was migrated: it takes writers of schema {min_writer} or newer, this one has {schema}. "
            "Nothing was written → pip install --upgrade relet",
            min_writer=min_writer, schema=schema,
        )  # fmt: skip


def check_reader(place: str, version: int, min_reader: int, schema: int | None = None) -> None:
    """Refuse a store whose schema this relet cannot read."""
    schema = SCHEMA if schema is None else schema
    if min_reader > schema:
        raise UpgradeRequired(
            f"{place} has schema {version} and asks for readers of {min_reader} or newer, this relet has {schema}; "
            "nothing was changed → pip install --upgrade relet",
            place=place, version=version, schema=schema,
        )  # fmt: skip


def check_version(place: str, version: int, min_reader: int, schema: int | None = None, way: str = ALONE) -> None:
    """Refuse a store whose schema this relet cannot read, or one that is older and not yet migrated."""
    schema = SCHEMA if schema is None else schema
    check_reader(place, version, min_reader, schema)
    if version < schema:
        raise UpgradeRequired(
            f"{place} has schema {version}, this relet needs {schema}; nothing was changed. {way}",
            place=place, version=version, schema=schema,
        )  # fmt: skip
