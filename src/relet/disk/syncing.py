"""What was written is on disk: past the system's memory, and past the drive's own."""

from __future__ import annotations

import os
import sys

if sys.platform != "win32":
    import fcntl


def sync_file(descriptor: int) -> None:
    """What was written into an open file or folder is on disk when this returns."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync stops at the drive's own memory there
    else:
        os.fsync(descriptor)


def sync_path(path: str | os.PathLike[str]) -> None:
    """What was written under this path, renamed into it or removed from it is on disk, whoever did it."""
    if sys.platform == "win32" and os.path.isdir(path):  # pragma: no cover - folders cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)
