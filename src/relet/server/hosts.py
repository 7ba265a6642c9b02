"""The names of the service: how they are given, and which of them a request may call it by."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

from relet.core.border import invalid, shown

NAME_MAX: Final = 253
PORT_MAX: Final = 65_535
PORTS: Final = {"http": ":80", "https": ":443"}
"""Those that are left out where the scheme says them, as browsers do."""
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_SENT: Final = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def host_names(given: Sequence[str]) -> list[str]:
    """Names as a request has them, an address of IPv6 in brackets. Raises `Invalid` for what none can have."""
    return [_host_name(text) for text in given]


class Hosts:
    """All names of one service."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(_plain(name) for name in names)
        self._without_port = frozenset(
            name.removesuffix(port) for name in self._names for port in PORTS.values() if name.endswith(port)
        )

    def __str__(self) -> str:
        return ", ".join(sorted(self._names))

    def has(self, host: str) -> bool:
        """Is it one of them, at whatever port: a tunnel or a proxy may have another one."""
        host = _plain(host)
        if host in self._names or host in self._without_port:
            return True
        found = _SENT.fullmatch(host)
        return found is not None and found[1] in self._names

    def is_site(self, origin: str) -> bool:
        """Is it a site of theirs, with its port: what is at another one of this machine is another site."""
        try:
            site = urlsplit(origin)
        except ValueError:
            return False
        host = _plain(site.netloc)
        return host in self._names or host + PORTS.get(site.scheme, "") in self._names


def _plain(host: str) -> str:
    """In its one spelling: a dot at the end of a name says only that it is a whole one."""
    name, colon, port = host.lower().rpartition(":")
    if colon and port.isdigit():
        return f"{name.removesuffix('.')}:{port}"
    return host.lower().removesuffix(".")


def _host_name(text: str) -> str:
    if not text.isascii():
        raise _no_name(text, "write its xn-- form, which is what clients send")
    try:
        if "%" not in text:
            return f"[{ipaddress.IPv6Address(text)}]"
    except ValueError:
        pass
    host = _plain(text)
    name, colon, port = host.rpartition(":") if re.search(r":[0-9]*$", host) else (host, "", "")
    if colon and not (port and len(port) <= len(str(PORT_MAX)) and 0 < int(port) <= PORT_MAX):
        raise _no_name(text, f"its port is none of 1 to {PORT_MAX}")
    if not _is_host(name):
        alone = "write the host alone, such as relet.example.com, 10.0.0.7 or relet.example.com:8443"
        raise _no_name(text, "give it once for each" if "," in text else alone)
    return host


def _is_host(name: str) -> bool:
    try:
        if name.startswith("["):
            return "%" not in name and name.endswith("]") and bool(ipaddress.IPv6Address(name[1:-1]))
        if name.rpartition(".")[2].isdigit():
            return bool(ipaddress.IPv4Address(name))
    except ValueError:
        return False
    return len(name) <= NAME_MAX and all(_LABEL.fullmatch(label) for label in name.split("."))


def _no_name(text: str, way: str) -> Exception:
    return invalid("host_name", f"{shown(text)} is no host name or address; {way}")
