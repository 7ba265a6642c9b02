"""A database's address as it can be pasted elsewhere: with the user that it asks for, and without a secret."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode

from relet.core.errors import Invalid
from relet.store.postgres.place import located, place_of, url_of
from relet.store.postgres.url_parts import parts_of

KEPT: Final = ("hostaddr", "service", "sslmode", "sslrootcert", "target_session_attrs")
"""Without them it may be another server, or none. What is not named here may be a secret."""


def address_of(url: str, schema: str) -> str:
    """The URL of a schema."""
    parts = parts_of(url)
    user, database = (quote(str(parts.get(name) or ""), safe="") for name in ("user", "dbname"))
    kept = {name: parts[name] for name in KEPT if parts.get(name)}
    hosts, ports = (str(parts.get(name) or "").split(",") for name in ("host", "port"))
    if len(hosts) == len(ports):
        hosts = [_at(host, port) for host, port in zip(hosts, ports, strict=True)]
    else:
        hosts, kept["port"] = [_at(host, "") for host in hosts], parts["port"]
    return url_of(_joined(f"{user}@" if user else "", ",".join(hosts), database, kept), schema)


def is_same(shown: str, url: str, schema: str) -> bool:
    """Is it the same schema of the same database, whoever asks, and however it was shown."""
    place = place_of(url, schema)
    if shown == place:
        return True
    try:
        return place_of(*located(shown, None)) == place
    except Invalid:
        return False


def _at(host: str, port: str) -> str:
    # The folder of a socket too is read back as it was.
    name = f"[{host}]" if ":" in host else quote(host, safe="")
    return f"{name}:{port}" if port else name


def _joined(user: str, where: str, database: str, kept: dict[str, Any]) -> str:
    options = f"?{urlencode(kept, quote_via=quote)}" if kept else ""
    return f"postgresql://{user}{where}/{database}{options}"
