"""What an operator asks of a store on a server that is there already; none is made for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import psycopg
from msgspec.structs import replace

from relet.core import border
from relet.core.doctor.examine import examine
from relet.core.doctor.facts import Facts
from relet.core.doctor.report import Report
from relet.core.doctor.server_facts import ServerFacts
from relet.core.errors import Error, Invalid, NotFound
from relet.store.conditions import with_work
from relet.store.postgres.backend import PostgresBackend
from relet.store.postgres.connect import WITHOUT, connect
from relet.store.postgres.examine import look_at
from relet.store.postgres.faults import translated
from relet.store.postgres.place import conninfo_of, located, place_of, quoted

_SETTINGS: Final = ("url", WITHOUT)
"""With a wrong one of these no server was looked at."""


def diagnose(url: str, tenant: str, schema: str | None, *, alone: bool, artifacts: str | None) -> Report:
    """What is amiss with a store, also where it cannot be opened, or its server cannot be reached."""
    url, schema = located(url, schema)
    place = place_of(url, schema)
    facts = Facts(server=ServerFacts(place=place), tenant=tenant, alone=alone)
    try:
        facts = replace(facts, server=look_at(url, schema, artifacts=artifacts))
        if facts.server is not None and facts.server.schema is not None and facts.moved is None:
            facts = _with_work(url, schema, facts)
    except Error as refused:
        if isinstance(refused, Invalid) and refused.detail.get("field") in _SETTINGS and refused.code == Invalid.code:
            raise
        facts = replace(facts, refused=str(refused))
    except psycopg.Error as wrong:
        facts = replace(facts, refused=str(translated(wrong, place)))
    return examine(place, facts)


def _with_work(url: str, schema: str, facts: Facts) -> Facts:
    border.name("tenant", facts.tenant)
    with closing(PostgresBackend(url, facts.tenant, schema)) as backend:
        return with_work(backend, facts)


def is_there(url: str, schema: str | None) -> bool:
    """Has somebody made the store's tables."""
    url, schema = located(url, schema)
    place = place_of(url, schema)
    try:
        with connect(conninfo_of(url), place) as connection:
            row = connection.execute("SELECT to_regclass($1) IS NOT NULL", [f"{quoted(schema)}.meta"]).fetchone()
            return row is not None and bool(row[0])
    except psycopg.Error as wrong:
        raise translated(wrong, place) from wrong


@contextmanager
def existing(url: str, tenant: str, schema: str | None) -> Iterator[PostgresBackend]:
    """A store that is there, open for a block. Raises `NotFound`."""
    url, schema = located(url, schema)
    if not is_there(url, schema):
        raise NotFound(
            f"{place_of(url, schema)}: there is no store in schema {schema}; name the one that you meant with --url "
            "or RELET_URL",
            code="RELET-NOT-A-STORE",
        )  # fmt: skip
    with closing(PostgresBackend(url, tenant, schema)) as backend:
        yield backend
