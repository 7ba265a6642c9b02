"""The program that kills groups, on a system that tells nobody of a process's death; isolated as that one is."""

import os
import runpy
from pathlib import Path

PROGRAM = Path(__file__).parents[3] / "src" / "relet" / "worker" / "group_killer.py"


def pidfd_open(_pid):
    raise OSError("no such thing here")


os.pidfd_open = pidfd_open
runpy.run_path(str(PROGRAM), run_name="__main__")
