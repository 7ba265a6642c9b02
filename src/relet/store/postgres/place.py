"""Which database a URL means: its parts checked, and its name without a secret."""

from __future__ import annotations

import re
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from relet.core.border import shown
from relet.core.errors import Invalid

DEFAULT_SCHEMA: Final = "relet"
CONNECT_S: Final = 4
"""Bad addresses are told within five seconds, however many there are."""
_SAID: Final = re.compile(r"""[^"]*("\w{1,40}"$)?""")
"""What the driver says up to where it cites the URL, which may hold a password; the name of an option is told."""
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
ENCODING: Final = "UTF8"
_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "relet", "keepalives": 1, "keepalives_idle": 10,
    "keepalives_interval": 3, "keepalives_count": 3, "tcp_user_timeout": 10_000,
}  # fmt: skip
"""A connection that was cut without a word is noticed in seconds, and not in the system's two hours."""


def conninfo_of(url: str) -> str:
    """What the driver connects with. Raises `Invalid` for what is no address."""
    try:
        parts = conninfo_to_dict(url.partition("#")[0])
    except psycopg.ProgrammingError as wrong:
        why = _SAID.match(" ".join(str(wrong).split()))
        raise Invalid(
            f"url: is not the address of a PostgreSQL database ({why[0].rstrip(': ') if why else '?'}); write "
            "postgresql://user@host:5432/database",
            field="url",
        ) from None
    port = str(parts.get("port") or "")
    if not all(part.isascii() and (part.isdigit() or not part) for part in port.split(",")):
        raise Invalid(
            f"url: {shown(port)} is no number of a port; write postgresql://user@host:5432/database", field="url"
        )
    given = {key: value for key, value in parts.items() if value is not None}
    # Whatever a role, a variable or the URL asks for: there is no other in which all that relet keeps can be sent.
    return make_conninfo(**{**_DEFAULTS, **given, "client_encoding": ENCODING})


def place_of(url: str, schema: str) -> str:
    """The database as it is shown: never with a password."""
    parts = conninfo_to_dict(url.partition("#")[0])
    host, port = parts.get("host") or "localhost", parts.get("port")
    where = f"{host}:{port}" if port and not str(host).startswith("/") else str(host)
    name = parts.get("dbname") or parts.get("user") or "?"
    return f"postgresql://{where}/{name}" + ("" if schema == DEFAULT_SCHEMA else f" (schema {schema})")


def located(url: str, schema: str) -> tuple[str, str]:
    """The database of a URL, and the schema in it: that after a #, where it has one. Raises `Invalid`.

    So one text says all that another process needs, and all that a command can be told.
    """
    database, _, named = url.partition("#")
    if named and schema not in (DEFAULT_SCHEMA, named):
        raise Invalid(
            f"schema: the URL names {shown(named)}, and {shown(schema)} is asked for; name one of them",
            field="schema",
        )
    return database, check_schema(named or schema)


def url_of(url: str, schema: str) -> str:
    """The same store in one text."""
    database, _, _ = url.partition("#")
    return database if schema == DEFAULT_SCHEMA else f"{database}#{schema}"


def check_schema(schema: str) -> str:
    """A schema's name that is the same with quotes and without, were it no word of SQL. Raises `Invalid`."""
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise Invalid(
            f"schema: {shown(schema)} cannot be the name of relet's schema; take up to 63 small letters, digits and "
            "underscores, beginning with a letter, and not with pg_",
            field="schema",
        )
    if schema in ("information_schema", "public"):
        raise Invalid(
            f"schema: {schema} is not relet's alone; name one that holds nothing else, as in schema='relet'",
            field="schema",
        )
    return schema


def quoted(schema: str) -> str:
    """As a statement names it: order, user and table are good names too."""
    return schema if schema == DEFAULT_SCHEMA else f'"{schema}"'
