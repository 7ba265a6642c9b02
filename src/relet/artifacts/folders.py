"""The folders of a local place: made for this user alone, durable once made, and never a link to elsewhere."""

from __future__ import annotations

import os
import stat
import sys
from typing import Final

from relet.artifacts.failures import unusable
from relet.disk.syncing import sync_path

_OTHERS_MAY_WRITE: Final = 0o002


def make(folder: str) -> None:
    """Make a folder in one that exists, on disk when this returns; one that is there already is fine."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return
    sync_path(os.path.dirname(folder))


def check(folder: str) -> bool:
    """Is the folder there; `Unavailable` when it is a link or something else, or anybody may write into it."""
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(found.st_mode):
        raise unusable(
            folder, "it is a symbolic link, behind which anybody's folder may be; name the folder that it points to"
        )
    if not stat.S_ISDIR(found.st_mode):
        raise unusable(folder, "it is not a folder; move it away, or name another one")
    if sys.platform != "win32" and found.st_mode & _OTHERS_MAY_WRITE:
        raise unusable(folder, f"every user may write into it; name a folder in it instead, or: chmod o-w {folder}")
    return True
