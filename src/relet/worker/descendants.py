"""Processes that descend from a child and have left its group, as far as the machine still tells."""

from __future__ import annotations

import contextlib
import os
import sys


def left_group(leader: int) -> list[str]:
    """Each as `pid (program)`; those whose parents have died are not to be found any more. Linux only."""
    if sys.platform != "linux":
        return []
    parents: dict[int, int] = {}
    groups: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                pid = int(entry)
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                    before, _, after = file.read().rpartition(")")
                _, parent, group = after.split()[:3]
                parents[pid], groups[pid], names[pid] = int(parent), int(group), before.partition("(")[2]
    found, wanted = [], {leader}
    while wanted:
        wanted = {pid for pid, parent in parents.items() if parent in wanted}
        found += [f"{pid} ({names[pid]})" for pid in sorted(wanted) if groups[pid] != leader]
    return found
