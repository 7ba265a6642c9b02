"""Whose turn it is in a folder: any number of puts at once, or one removal that looks and removes in one step."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from relet.artifacts.failures import failed, unusable
from relet.core.limits import ARTIFACT_LOCK_MS_MAX, SECOND_MS

if sys.platform != "win32":
    import fcntl

NAME: Final = "lock"
_FLAGS: Final = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_LOOK_EVERY_S: Final = 0.005


@contextmanager
def turn(folder: str, *, alone: bool) -> Iterator[None]:
    """Hold the folder's lock, shared or `alone`; `Unavailable` when others do not let go of it in time."""
    try:
        descriptor = os.open(os.path.join(folder, NAME), _FLAGS, 0o600)
    except OSError as wrong:
        raise failed(wrong, folder) from wrong
    try:
        _acquire(descriptor, folder, alone=alone)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, folder: str, *, alone: bool) -> None:
    if sys.platform == "win32":  # pragma: no cover - without flock a removal relies on the age alone
        return
    until = time.monotonic() + ARTIFACT_LOCK_MS_MAX / SECOND_MS
    while True:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as wrong:
            if wrong.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise failed(wrong, folder) from wrong
            if time.monotonic() >= until:
                raise unusable(
                    folder, f"another process has held {NAME} in it for too long; end it, or try again", "RELET-BUSY"
                ) from wrong
            time.sleep(_LOOK_EVERY_S)
        else:
            return
