"""A small program: told of process groups by lines, it kills those that are left when whoever told it has died.

Run by path with nothing but the standard library, since it starts with each worker that has children.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Read `+group` and `-group` until the pipe ends, which it does when its writer is gone, however that came."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
