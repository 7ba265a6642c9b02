"""A small program: told of process groups by lines, it kills those that are left when whoever told it has died.

Run by path with nothing but the standard library, since it starts with each worker that has children.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator

LOOK_EVERY_S = 0.002
LOOKS = 500
SCANS = 10
"""Of all processes, for those that are still starting others."""
PARENT_EVERY_MS = 50
"""How often the parent is looked at where the system does not tell of its death."""


def main() -> None:
    """Read `+group` and `-group` until the writer is gone or has said `.`, and kill what is left.

    The end of the pipe alone does not tell: every fork of the writer holds it open. `=group` is the writer's own:
    it is left alone where the writer lives on as another program. `~group NAME=value` is one that the writer shares
    with others: of it those are killed that have this in their environment.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    writer = int(sys.argv[1])  # told, since it may have died before this program began
    groups: dict[int, str] = {}
    shared: dict[int, bytes] = {}
    for line in lines_until_gone(writer):
        if line == ".":
            return
        if line[0] == "~":
            its, _, mark = line[1:].partition(" ")
            shared[int(its)] = mark.encode()
        elif line[0] == "-":
            groups.pop(int(line[1:]), None)
        else:
            groups[int(line[1:])] = line[0]
    for group in sorted(groups, key=lambda group: groups[group]):
        if groups[group] == "=" and not has_died(writer):
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    if shared and has_died(writer):
        for group, words in shared.items():
            kill_marked(group, words)


def kill_marked(group: int, mark: bytes) -> None:
    """Kill who is of the group and was started with the mark; Linux only, for nowhere else is it told."""
    for _ in range(SCANS if sys.platform == "linux" else 0):
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_marked(pid, group, mark)]
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def is_marked(pid: int, group: int, mark: bytes) -> bool:
    """Is it of the group, and was it started with the mark."""
    with contextlib.suppress(OSError):
        if os.getpgid(pid) == group:
            with open(f"/proc/{pid}/environ", "rb") as file:
                return mark in file.read().split(b"\0")
    return False


def lines_until_gone(writer: int) -> Iterator[str]:
    """What it says, to the last word, until its end of the pipe is closed everywhere, or it has died."""
    poll, death = select.poll(), None
    poll.register(0, select.POLLIN)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            death = os.pidfd_open(writer)
            poll.register(death, select.POLLIN)
    rest, is_dead = b"", os.getppid() != writer  # asked last: a number that is another's by now is no parent
    while True:
        # What it said before it died is in the pipe already.
        ready = {one for one, _ in poll.poll(0 if is_dead else PARENT_EVERY_MS if death is None else None)}
        if 0 in ready:
            said = os.read(0, 1 << 16)
            if not said:
                return
            *lines, rest = (rest + said).split(b"\n")
            yield from (line.decode() for line in lines)
        elif is_dead:
            return
        is_dead = is_dead or death in ready or os.getppid() != writer


def has_died(writer: int) -> bool:
    """Is it dead, or another program now: the dead close their files a moment before their children are orphans."""
    for _ in range(LOOKS):
        if os.getppid() != writer:
            return True
        time.sleep(LOOK_EVERY_S)
    return False


if __name__ == "__main__":
    main()
