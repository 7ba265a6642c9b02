"""A wall clock of a server's own, which a test can step while it runs (libfaketime); its other clocks are the true ones."""

import contextlib
import os
import subprocess
from pathlib import Path

from tests.servers.unprivileged import installed


class WallClock:
    """Some seconds off, for every process that is started with the environment."""

    def __init__(self, folder):
        self._file = folder / "wall-clock"
        self.step_to(0)
        # The program that comes with the library knows where it is.
        told = subprocess.run(
            [installed("faketime", "faketime"), "-m", "-f", "+0", "printenv", "LD_PRELOAD"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.environment = {
            "LD_PRELOAD": told.stdout.strip(), "FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip

    def step_to(self, offset_s):
        """So many seconds ahead of the true time from now on; behind it if negative."""
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{offset_s:+}\n")
        draft.chmod(0o644)
        os.replace(draft, self._file)


def forget_shared(pid):
    """What the library keeps in shared memory for a process, and does not remove when that is killed."""
    for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
        with contextlib.suppress(FileNotFoundError):
            (Path("/dev/shm") / name).unlink()
