"""A lock of the kernel on an open file, which ends with its process."""

from __future__ import annotations

import errno
import sys
from typing import Final

from relet.disk.patience import tries

if sys.platform != "win32":
    import fcntl

TAKEN: Final = frozenset({errno.EWOULDBLOCK, errno.EACCES})


def lock(descriptor: int, patience_ms: int, *, alone: bool = True) -> bool:
    """Take the lock, `alone` or shared, until the file is closed; False when others kept it for too long.

    Raises OSError where the file system has no such locks.
    """
    if sys.platform == "win32":  # pragma: no cover - there is no flock
        return True
    for _ in tries(patience_ms):
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as wrong:
            if wrong.errno not in TAKEN:
                raise
        else:
            return True
    return False
