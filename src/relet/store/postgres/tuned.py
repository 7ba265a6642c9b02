"""Which of the settings in tuning.sql are in place."""

from __future__ import annotations

import re
from typing import Final

from relet.store.postgres.connect import TUNING, Connection
from relet.store.postgres.texts import Dialect

_SET: Final = re.compile(r"ALTER TABLE relet\.(\w+) SET \((.*)\)", re.DOTALL)
_UNLOGGED: Final = re.compile(r"ALTER TABLE relet\.(\w+) SET UNLOGGED")
_STORED: Final = (
    "SELECT c.relname, c.relpersistence = 'u', coalesce(c.reloptions, '{}') FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'"
)


def untuned(connection: Connection, dialect: Dialect) -> list[str]:
    """The names of the statements of tuning.sql that are not in force, or not any more."""
    stored = {name: (unlogged, set(options)) for name, unlogged, options in connection.execute(
        _STORED, [dialect.schema]
    )}  # fmt: skip
    found = []
    for name, text in TUNING.items():
        if match := _UNLOGGED.search(text):
            is_there = stored.get(match[1], (True, set()))[0]
        else:
            match = _SET.search(text)
            assert match is not None, "tuning.sql sets options of tables, or makes them unlogged"
            wanted = {"=".join(part.split(" = ")) for part in " ".join(match[2].split()).split(", ")}
            is_there = wanted <= stored.get(match[1], (True, wanted))[1]
        if not is_there:
            found.append(name)
    return found
