"""A wall clock of a server's own, which a test can step while it runs; its other clocks are the true ones."""

import mmap
import subprocess
from functools import cache
from pathlib import Path

from tests.servers.unprivileged import installed, kept_folder

SOURCE = Path(__file__).with_suffix(".c")


class WallClock:
    """Some seconds off, for every process that is started with the environment."""

    def __init__(self, folder):
        self._file = folder / "wall-clock"
        self._file.write_bytes(bytes(8))
        self._file.chmod(0o644)  # its readers are somebody else
        self.environment = {"LD_PRELOAD": str(library()), "RELET_TEST_WALL_CLOCK": str(self._file)}

    def step_to(self, offset_s):
        """So many seconds ahead of the true time from now on; behind it if negative. All processes see it at once."""
        with (
            self._file.open("r+b") as file, mmap.mmap(file.fileno(), 8) as mapped,
            memoryview(mapped) as whole, whole.cast("q") as number,
        ):  # fmt: skip
            number[0] = round(offset_s * 1e9)  # one store of eight bytes: nobody reads the half of an offset


@cache
def library():
    made = kept_folder() / "wall_clock.so"
    compiler = installed("cc", "gcc libc6-dev")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", made, SOURCE], check=True)
    made.chmod(0o755)
    return made
