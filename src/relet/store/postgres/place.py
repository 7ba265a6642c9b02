"""Which database a URL means: its parts checked, and its name without a secret."""

from __future__ import annotations

from typing import Any, Final

from psycopg.conninfo import make_conninfo

from relet.core.border import shown
from relet.core.errors import Invalid
from relet.store.postgres.url_parts import NAME_RULE, divided, is_name, parts_of

DEFAULT_SCHEMA: Final = "relet"
CONNECT_S: Final = 4
"""Bad addresses are told within five seconds, however many there are."""
ENCODING: Final = "UTF8"
_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "relet", "keepalives": 1, "keepalives_idle": 10,
    "keepalives_interval": 3, "keepalives_count": 3, "tcp_user_timeout": 10_000,
}  # fmt: skip
"""A connection that was cut without a word is noticed in seconds, and not in the system's two hours."""


def conninfo_of(url: str) -> str:
    """What the driver connects with. Raises `Invalid` for what is no address."""
    # Whatever a role, a variable or the URL asks for: there is no other in which all that relet keeps can be sent.
    return make_conninfo(**{**_DEFAULTS, **parts_of(url), "client_encoding": ENCODING})


def place_of(url: str, schema: str) -> str:
    """The database as it is shown: never with a password. Raises `Invalid` for what is no address."""
    parts = parts_of(url)
    host, port = parts.get("host") or "localhost", parts.get("port")
    where = f"{host}:{port}" if port and not str(host).startswith("/") else str(host)
    name = parts.get("dbname") or parts.get("user") or "?"
    return f"postgresql://{where}/{name}" + ("" if schema == DEFAULT_SCHEMA else f" (schema {schema})")


def located(url: str, schema: str | None) -> tuple[str, str]:
    """The database of a URL, and the schema in it: that after a #, else the one that is asked for. Raises `Invalid`.

    So one text says all that another process needs, and all that a command can be told.
    """
    database, named = divided(url)
    if named and schema is not None and schema != named:
        raise Invalid(
            f"schema: the URL names {shown(named)}, and {shown(schema)} is asked for; name one of them",
            field="schema",
        )
    return database, check_schema(named or (DEFAULT_SCHEMA if schema is None else schema))


def url_of(url: str, schema: str) -> str:
    """The same store in one text."""
    database, _, _ = url.partition("#")
    return database if schema == DEFAULT_SCHEMA else f"{database}#{schema}"


def check_schema(schema: str) -> str:
    """A schema's name that is the same with quotes and without, were it no word of SQL. Raises `Invalid`."""
    if not is_name(schema):
        raise Invalid(f"schema: {shown(schema)} cannot be the name of relet's schema; {NAME_RULE}", field="schema")
    if schema in ("information_schema", "public"):
        raise Invalid(
            f"schema: {schema} is not relet's alone; name one that holds nothing else, as in schema='relet'",
            field="schema",
        )
    return schema


def quoted(schema: str) -> str:
    """As a statement names it: order, user and table are good names too."""
    return schema if schema == DEFAULT_SCHEMA else f'"{schema}"'
