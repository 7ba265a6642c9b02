"""Whose turn it is in a folder: any number of puts at once, or one removal that looks and removes in one step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from relet.artifacts.failures import failed, unusable
from relet.core.limits import ARTIFACT_LOCK_MS_MAX
from relet.disk.locking import lock

NAME: Final = "lock"
_FLAGS: Final = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def turn(folder: str, *, alone: bool) -> Iterator[None]:
    """Hold the folder's lock, shared or `alone`; `Unavailable` when others do not let go of it in time.

    Where the platform has no such locks, a removal relies on the age alone.
    """
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
    try:
        got = lock(descriptor, ARTIFACT_LOCK_MS_MAX, alone=alone)
    except OSError as wrong:
        raise failed(wrong, folder) from wrong
    if not got:
        raise unusable(
            folder, f"another process has held {NAME} in it for too long; end it, or try again", "RELET-BUSY"
        )
