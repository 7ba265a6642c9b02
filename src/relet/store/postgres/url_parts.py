"""What stands in a URL: its parts, or why it is no address; told without a password, in whatever place it stands."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from relet.core.border import invalid
from relet.core.errors import Invalid

WRITE: Final = "write postgresql://user@host:5432/database"
NAME_RULE: Final = "take up to 63 small letters, digits and underscores, beginning with a letter, and not with pg_"
_PARTS: Final = re.compile(r"postgres(?:ql)?://(?:[^@/]*@)?(?P<database>[^?]*)(?:\?(?P<settings>.*))?", re.DOTALL)
"""As the driver takes it apart: up to the first @ before a / is who comes, after the first ? then is how."""
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SAID: Final = re.compile(r"""[^"]*("\w{1,40}"$)?""")
"""What the driver says up to where it cites the URL; the name of an option at the end is told."""
_PORT: Final = re.compile(r"[0-9]{0,5}")
_PORT_MOST: Final = 65_535
_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,9}\s*")
_NUMBERS: Final = (
    "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
)  # fmt: skip


def parts_of(url: str) -> dict[str, Any]:
    """What the driver is told, by its names. Raises `Invalid`, whatever is wrong with it."""
    database, _ = divided(url)
    if not database.isprintable():
        raise invalid(
            "url", "has a line break, or another character that cannot be shown; write it as % and two digits"
        )
    if (match := _PARTS.fullmatch(database)) is None:
        raise invalid("url", f"does not begin with postgresql://; {WRITE}")
    if "@" in match["database"]:
        raise invalid(
            "url", "has an @ too much, or a / before it: within a user, a password or a name write %40 for an @ and "
            f"%2F for a /; {WRITE}",
        )  # fmt: skip
    try:
        parts = {key: value for key, value in conninfo_to_dict(database).items() if value is not None}
    except psycopg.ProgrammingError as wrong:
        raise _refused(" ".join(str(wrong).split()), match["settings"] or "") from None
    except UnicodeError:
        raise invalid("url", f"has a % that begins no letter of UTF-8; write %25 for a %; {WRITE}") from None
    _check_numbers(parts)
    return parts


def divided(url: str) -> tuple[str, str]:
    """A URL up to its #, and the name of a schema after that. Raises `Invalid` where it cannot be one."""
    database, _, named = url.partition("#")
    if named and not is_name(named):
        # Not shown: it is the end of a password as often as not.
        raise invalid(
            "url", "has a # after which no name of a schema stands: within a user or a password write %23 for a #; "
            f"for a schema {NAME_RULE}",
        )  # fmt: skip
    return database, named


def is_name(schema: str) -> bool:
    """Can a schema have this name, and be the same with quotes and without, were it no word of SQL."""
    return _SCHEMA.fullmatch(schema) is not None and not schema.startswith("pg_")


def _refused(said: str, settings: str) -> Invalid:
    why = _SAID.match(said)
    told = "?" if why is None else why[0]
    if why is not None and why[1] and ("@" in settings or "password" in unquote(settings).lower()):
        told = told.removesuffix(why[1])  # what stands after an & within a password looks like a name
    fix = "a schema is named after a #, as in postgresql://user@host/database#jobs; " if '"schema"' in told else ""
    return invalid(
        "url", f"is not the address of a PostgreSQL database ({told.rstrip(': ')}); {fix}{WRITE}, and a sign that "
        "means something there, or a space, as % and two digits",
    )  # fmt: skip


def _check_numbers(parts: dict[str, Any]) -> None:
    """What the driver would find out only when it connects, and tell as if the server were away."""
    for port in str(parts.get("port") or "").split(","):
        # Not shown: without a host and an @ a password stands there.
        if _PORT.fullmatch(port) is None or not 1 <= int(port or 1) <= _PORT_MOST:
            raise invalid("url", f"its port is no number of 1 to {_PORT_MOST}; {WRITE}")
    for name in _NUMBERS:
        if _WHOLE.fullmatch(str(parts.get(name, 0))) is None:
            raise invalid("url", f"{name} is no whole number; write ?{name}=10, say, or leave it out")
