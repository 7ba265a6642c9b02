"""All processes of a server at once: stopped, continued or killed, with whatever it started (Linux).

They are found by the folder they work in: PostgreSQL's children make sessions of their own, and Patroni's PostgreSQL
is nobody's child.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.alive import state_of
from tests.waiting import eventually


def at_work_in(folder):
    """Pids of the living; of the dead that nobody has reaped yet the system tells no folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if Path(os.readlink(link)).is_relative_to(folder):
                found.append(int(link.parent.name))
    return found


def freeze(folder):
    """As when a virtual machine is suspended: nothing runs, every connection stays open."""

    def all_stand_still():
        moving = [pid for pid in at_work_in(folder) if not stands_still(pid)]
        send(signal.SIGSTOP, moving)
        return not moving

    eventually(all_stand_still)


def thaw(folder):
    send(signal.SIGCONT, at_work_in(folder))


def kill(folder):
    """As when the machine loses its power, as far as its processes go."""
    freeze(folder)  # or one of them could start what has just been killed

    def none_left():
        left = at_work_in(folder)
        send(signal.SIGKILL, left)
        return not left

    eventually(none_left)


def clear(folder):
    """Kill what works in a folder, and remove it, with what a killed PostgreSQL leaves outside of it."""
    kill(folder)
    for owned in folder.glob("*/postmaster.pid"):
        # The seventh line, which comes late in the start of a server, has the key and the number of shared memory.
        for line in owned.read_text(encoding="utf-8").splitlines()[6:7]:
            subprocess.run(["ipcrm", "-m", line.split()[1]], check=False, capture_output=True)
    shutil.rmtree(folder)


def send(number, pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def stands_still(pid):
    """Is it stopped; also what is gone is."""
    return state_of(pid) in "TtZX"
