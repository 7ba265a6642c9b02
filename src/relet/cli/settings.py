"""What a command works with: flag, then RELET_*, then the folder's file, then the user's file, then the default."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from relet.cli.files import FileSettings, read_files
from relet.core.border import invalid, shown

DEFAULT: Final = "default"
YES: Final = frozenset({"1", "true", "yes", "on"})
NO: Final = frozenset({"0", "false", "no", "off", ""})


class Setting(NamedTuple):
    """One thing that can be set: how the environment spells it, and how its values are read."""

    name: str
    variable: str
    default: Any
    read: Callable[[str, Any], Any]
    help: str
    has_flag: bool = True


class Effective(NamedTuple):
    """A value, and where it was set."""

    value: Any
    origin: str


def text(field: str, value: Any) -> str:
    """Any text that is not empty."""
    if not isinstance(value, str) or not value:
        raise invalid(field, f"{shown(value)} is not text")
    return value


def duration(field: str, value: Any) -> Any:
    """Seconds, or text such as "90s"; the verb that uses it checks the bounds."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise invalid(field, f'{shown(value)} is not a duration; give seconds (90), or text such as "90s"')
    return value


def rate(field: str, value: Any) -> Any:
    """So many in a time, as text such as "100/s", or a number of each second; what uses it checks the bounds."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise invalid(field, f'{shown(value)} is not a rate; give a number of each second (100), or text ("6000/m")')
    return value


def flag(field: str, value: Any) -> bool:
    """A truth value, also as the words that environments use for it."""
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else None
    if word in YES or word in NO:
        return word in YES
    raise invalid(field, f"{shown(value)} is neither true nor false; write 1 or 0")


def whole(field: str, value: Any) -> int:
    """A whole number of at least 1."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise invalid(field, f"{shown(value)} is not a whole number of at least 1")
    return value


def names(field: str, value: Any) -> list[str]:
    """Names, as a list or as text with commas."""
    items = value.removesuffix(",").split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(item, str) and item.strip() for item in items):
        # An option that is given once for each comes as a list.
        way = "give it once for each" if field.startswith("--") and isinstance(value, list) else "write a,b"
        raise invalid(field, f"{shown(value)} is no list of names; {way}")
    return [item.strip() for item in items]


SETTINGS: Final = (
    Setting("url", "RELET_URL", "sqlite:///relet.db", text, "the store"),
    Setting("tenant", "RELET_TENANT", "default", text, "the namespace of tasks"),
    Setting("holder", "RELET_HOLDER", None, text, "the name to claim as; unset: host and process"),
    Setting("ttl", "RELET_TTL", None, duration, "what a claim asks for; unset: the task's, the queue's, or 60s"),
    Setting("queues", "RELET_QUEUES", None, names, "what `relet worker` takes from; unset: all of the app's"),
    Setting("concurrency", "RELET_CONCURRENCY", 1, whole, "how many tasks `relet worker` runs at a time"),
    Setting("listen", "RELET_LISTEN", "127.0.0.1:8787", text, "where `relet serve` listens"),
    Setting("host_name", "RELET_HOST_NAME", None, names, "names by which clients reach `relet serve`"),
    Setting("proxy", "RELET_PROXY", None, names, "proxies that `relet serve` believes: addresses and networks"),
    Setting("redact_env", "RELET_REDACT_ENV", None, names, "secret variables; unset: by their names", has_flag=False),
    Setting("rate", "RELET_RATE", None, rate, "how often a key may ask `relet serve`; unset: 5000/s"),
    Setting("json", "RELET_JSON", False, flag, "answer in JSON"),
    Setting("color", "RELET_COLOR", None, flag, "colour; unset: when stdout is a terminal and NO_COLOR is not set"),
)
BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def option_of(name: str) -> str:
    """How a setting is given as a flag."""
    return f"--{name.replace('_', '-')}"


class Settings:
    """The settings of one run; files are read when first asked for."""

    def __init__(self, given: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> None:
        self._given = given
        self._environ = os.environ if environ is None else environ
        self._files: list[FileSettings] | None = None

    def value(self, name: str) -> Any:
        """The value that holds. Raises `Invalid`, naming the place that has it wrong."""
        return self.effective(name).value

    def effective(self, name: str) -> Effective:
        """The value that holds, and its origin."""
        setting = BY_NAME[name]
        if self._given.get(name) is not None:
            return Effective(setting.read(option_of(name), self._given[name]), "flag")
        if (spelled := self._environ.get(setting.variable, "")) != "":
            return Effective(setting.read(setting.variable, spelled), f"env {setting.variable}")
        for file in self.files():
            if name in file.values:
                return Effective(setting.read(f"{file.origin}: {name}", file.values[name]), file.origin)
        return Effective(setting.default, DEFAULT)

    def files(self) -> list[FileSettings]:
        """The files that were found, the strongest first."""
        if self._files is None:
            self._files = read_files(self._environ, frozenset(BY_NAME))
        return self._files
