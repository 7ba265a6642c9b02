"""The store's clock on one machine: it counts while the machine is awake, and ignores steps of the wall clock.

`store_now = store_base + (monotonic - mono_base)`, with the base written once for each boot. A suspended laptop
does not expire everything when it wakes, and a reboot counts as no time at all.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import NamedTuple, Protocol


class Boot(NamedTuple):
    """Which run of which machine a clock belongs to; empty where the platform does not tell."""

    boot_id: str
    time_namespace: str
    machine_id: str


class StoreClock(Protocol):
    """What the engine reads, once it holds the write lock."""

    @property
    def boot(self) -> Boot:
        """The machine's present run."""

    def mono_ms(self) -> int:
        """A clock that no step moves, the same for all processes of this boot."""

    def wall_ms(self) -> int:
        """UTC."""


class SystemClock:
    """The clock of this machine. Without a boot id (Windows) monotonic time is the wall's, never going back."""

    def __init__(self) -> None:
        self.boot = Boot(_boot_id(), _time_namespace(), _machine_id())

    def mono_ms(self) -> int:
        if not self.boot.boot_id:
            return self.wall_ms()
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _boot_id() -> str:
    if sys.platform == "darwin":  # pragma: no cover - one platform at a time
        return _sysctl("kern.bootsessionuuid")
    return _read("/proc/sys/kernel/random/boot_id")


def _machine_id() -> str:
    if sys.platform == "darwin":  # pragma: no cover - one platform at a time
        return _sysctl("kern.uuid")
    return _read("/etc/machine-id")


def _time_namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/time").st_ino)
    except OSError:
        return ""


def _sysctl(name: str) -> str:  # pragma: no cover - macOS only
    import ctypes

    library = ctypes.CDLL(None)
    size = ctypes.c_size_t(128)
    buffer = ctypes.create_string_buffer(size.value)
    failed = library.sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, 0)
    return "" if failed else buffer.value.decode()
