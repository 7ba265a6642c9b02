"""A put that dies by SIGKILL before each of its calls to the system: dying_puts.py FOLDER SIZE [again]

Each death has a folder of its own, FOLDER/<n>; a line tells the call before which it came. The last line is the put
that came through. With `again` the bytes are there already, old, in each folder.
"""

import os
import signal
import sys

from relet.artifacts.local import LocalArtifacts

folder, size, *options = sys.argv[1:]
DATA = bytes(range(256)) * (int(size) // 256)
CALLS = ["open", "write", "fsync", "mkdir", "utime", "replace", "unlink", "close"]


def die_before(n):
    """The n-th of the calls is not made; of a write, one half is."""
    left = [n]

    def dying(name, real):
        def call(*arguments, **named):
            if left[0] == 0:
                if name == "write":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.truncate(told, 0)
                real_write(told_descriptor, name.encode())
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return real(*arguments, **named)

        return call

    told = os.path.join(folder, "told")
    told_descriptor = os.open(told, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    real_write = os.write
    for name in CALLS:
        setattr(os, name, dying(name, getattr(os, name)))


def put(n):
    store = LocalArtifacts(os.path.join(folder, str(n)))
    if options:
        stored = store.put(DATA)
        os.utime(os.path.join(store.folder, "sha256", stored.sha256[:2], stored.sha256[2:]), (1, 1))
    if (child := os.fork()) == 0:
        die_before(n)
        LocalArtifacts(store.folder).put(DATA)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        with open(os.path.join(folder, "told"), encoding="ascii") as file:
            return file.read()
    return f"ended {os.waitstatus_to_exitcode(status)}"


for n in range(200):
    told = put(n)
    sys.stdout.write(f"{told}\n")
    if told.startswith("ended"):
        break
