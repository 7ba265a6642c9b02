"""Who has a store open: processes of this machine, as far as this user may look into them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from relet.core.doctor.facts import ProcessFacts

PROC: Final = Path("/proc")
COMMAND_CHARS: Final = 80
NAMED_MAX: Final = 5
LOCK_WORDS: Final = 8
"""Of a lock that is held; one that is waited for has another."""
WRITE_LOCK_BYTE: Final = 120
"""Of the index beside a log: SQLite's lock of the one who writes."""


def who_maps(path: Path, proc: Path = PROC) -> list[ProcessFacts] | None:
    """Who has the file's log open; each copy of SQLite maps its index once. None where the platform does not tell."""
    if not proc.joinpath("self", "maps").exists():
        return None
    index = f"{os.path.realpath(path)}-shm"
    found = []
    for folder in _processes(proc):
        try:
            maps = folder.joinpath("maps").read_text("utf-8", "surrogateescape")
            if index not in maps:
                continue
            offsets = Counter(line.split()[2] for line in maps.splitlines() if line.endswith(index))
            engines = max(offsets.values(), default=0)
            found.append(ProcessFacts(pid=int(folder.name), command=_command(folder), engines=engines))
        except OSError:
            continue  # ended meanwhile, or somebody else's
    return sorted(found, key=lambda one: one.pid)


def who_holds(path: Path, but_for: int, proc: Path = PROC) -> list[tuple[int, str]]:
    """Who has the file open, by id and command; `but_for` is a descriptor of this process that does not count."""
    name = os.path.realpath(path)
    own = {proc / str(os.getpid()) / "fd" / str(but_for)}
    found = []
    for folder in _processes(proc):
        try:
            if any(os.readlink(one) == name for one in folder.joinpath("fd").iterdir() if one not in own):
                found.append((int(folder.name), _command(folder)))
        except OSError:
            continue
    return sorted(found)


def who_writes(path: Path, proc: Path = PROC) -> list[tuple[int, str]]:
    """Who is within a write transaction on the file now, by id and command; nobody where nothing tells."""
    try:
        index = os.stat(f"{os.path.realpath(path)}-shm").st_ino
        locks = [line.split() for line in proc.joinpath("locks").read_text("ascii").splitlines()]
    except (OSError, UnicodeDecodeError):
        return []
    found = []
    for _, kind, _, access, pid, place, first, *_ in (lock for lock in locks if len(lock) == LOCK_WORDS):
        if (kind, access, first) == ("POSIX", "WRITE", str(WRITE_LOCK_BYTE)) and place.endswith(f":{index}"):
            with suppress(OSError):
                found.append((int(pid), _command(proc / pid)))
    return sorted(found)


def named(found: list[tuple[int, str]]) -> str:
    """As words of a sentence; the first few, where there are many."""
    if not found:
        return "another process"
    words = ", ".join(f"process {pid} ({command})" for pid, command in found[:NAMED_MAX])
    return words if len(found) <= NAMED_MAX else f"{words} and {len(found) - NAMED_MAX} more"


def _processes(proc: Path) -> Iterator[Path]:
    try:
        yield from (folder for folder in proc.iterdir() if folder.name.isdigit())
    except OSError:
        return  # no Linux


def _command(folder: Path) -> str:
    words = folder.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return words[:COMMAND_CHARS]
