"""How the C library keeps memory: in few places, since each of many threads does little, and not for ever."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from typing import Final

M_ARENA_MAX: Final = -8
"""As <malloc.h> of glibc has it; see mallopt(3)."""
ARENAS: Final = 2
CHOSEN_BY: Final = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")


def keep_few() -> bool:
    """Have threads share two arenas; by itself glibc makes eight for each processor, and what one of them has freed
    no other uses. Called before the threads begin. False where there is no such call, or somebody has chosen already.
    """
    if not sys.platform.startswith("linux") or any(name in os.environ for name in CHOSEN_BY):
        return False
    with suppress(OSError, AttributeError):  # another C library has no such call
        return bool(ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS))
    return False


def give_back() -> bool:
    """Hand memory that a burst took, and nobody uses, back to the system; glibc keeps it by itself.

    Takes some milliseconds. False where there is no such call, or nothing to hand back.
    """
    with suppress(OSError, AttributeError):
        return sys.platform.startswith("linux") and bool(ctypes.CDLL(None).malloc_trim(0))
    return False
