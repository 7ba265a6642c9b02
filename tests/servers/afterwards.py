"""Ends the servers of tests that were killed or hung: a program that hears of their folders, and outlives the tests.

When the tests end in order there is nothing left for it but the folder that their servers had in common.
"""

import atexit
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.servers import at_work

ROOT = Path(__file__).parents[2]


def clear_afterwards(folder):
    """When this process has ended, in whatever way, what still works in the folder is killed, and the folder goes."""
    heir().stdin.write(f"{folder}\n")
    heir().stdin.flush()


@cache
def heir():
    # In a session of its own: neither Ctrl-C nor a `timeout` that ends the tests reaches it.
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.afterwards"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    )  # fmt: skip
    atexit.register(end, started)
    return started


def end(started):
    started.stdin.close()
    started.wait(30)


def main():
    for folder in [Path(line.rstrip("\n")) for line in sys.stdin]:  # read to the end, which is that of the tests
        if folder.exists():
            at_work.clear(folder)


if __name__ == "__main__":
    main()
