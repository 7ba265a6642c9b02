"""A small program: told of process groups by lines, it kills those that are left when whoever told it has died.

Run by path with nothing but the standard library, since it starts with each worker that has children.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Read `+group` and `-group` until the pipe ends, which it does when its writer is gone, however that came.

    `=group` is the writer's own: it is left alone where the writer lives on as another program.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    writer = os.getppid()
    groups: dict[int, str] = {}
    for line in sys.stdin:
        if line[0] == "-":
            groups.pop(int(line[1:]), None)
        else:
            groups[int(line[1:])] = line[0]
    for group, sign in groups.items():
        if sign == "=" and os.getppid() == writer:
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
