"""Where tests that are not about a disk keep their stores."""

import tempfile
from pathlib import Path


def quick_folder():
    """A temporary folder, in memory where the machine has such a place; a context manager that answers its path."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="relet-", dir=memory if memory.is_dir() else None)
