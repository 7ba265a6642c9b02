"""A small program: told of process groups by lines, it kills those that are left when whoever told it has died.

Run by path with nothing but the standard library, since it starts with each worker that has children.
"""

import contextlib
import os
import signal
import sys
import time

LOOK_EVERY_S = 0.002
LOOKS = 500


def main() -> None:
    """Read `+group` and `-group` until the pipe ends, which it does when its writer is gone, however that came.

    `=group` is the writer's own: it is left alone where the writer lives on as another program.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    writer = int(sys.argv[1])  # told, since it may have died before this program began
    groups: dict[int, str] = {}
    for line in sys.stdin:
        if line[0] == "-":
            groups.pop(int(line[1:]), None)
        else:
            groups[int(line[1:])] = line[0]
    for group in sorted(groups, key=lambda group: groups[group]):
        if groups[group] == "=" and not has_died(writer):
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def has_died(writer: int) -> bool:
    """Is it dead, or another program now: the dead close their files a moment before their children are orphans."""
    for _ in range(LOOKS):
        if os.getppid() != writer:
            return True
        time.sleep(LOOK_EVERY_S)
    return False


if __name__ == "__main__":
    main()
