"""What goes wrong in a place for artifacts, told so that a person knows what to do."""

from __future__ import annotations

import errno
from typing import Final

from relet.artifacts.uri import uri_of
from relet.core.border import shown
from relet.core.errors import Error, NotFound, Unavailable

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_RIGHTS: Final = {errno.EACCES, errno.EPERM, errno.EROFS}


def damaged(digest: str, found: str, place: str) -> Error:
    """The stored bytes are not those that the URI names."""
    return Error(
        f"{uri_of(digest)} in {place} is damaged: its bytes have the SHA-256 {found}. They were not handed out to "
        "the end; discard what you read. Store the artifact again, or restore the place from a backup",
        code="RELET-ARTIFACT-DAMAGED", uri=uri_of(digest), expected=digest, found=found, place=place,
    )  # fmt: skip


def missing(digest: str, place: str) -> NotFound:
    """Nothing is stored under the URI."""
    return NotFound(
        f"{uri_of(digest)} is not in {place}; it was deleted, or the place was not moved along with its store. "
        "Look for the place that it was stored in",
        code="RELET-ARTIFACT-MISSING", uri=uri_of(digest), place=place,
    )  # fmt: skip


def unusable(place: str, problem: str, code: str = "RELET-ARTIFACT-PLACE") -> Unavailable:
    """The place cannot be used as it is; `problem` says why, and the way out."""
    return Unavailable(f"the place of artifacts {place} cannot be used: {problem}", code=code, place=place)


def failed(wrong: OSError, place: str) -> Unavailable:
    """An error of the operating system; nothing was stored that anybody will see."""
    said = wrong.strerror or str(wrong)
    if wrong.errno in _FULL:
        return unusable(place, f"it is full ({said}); nothing was stored. Free some space", "RELET-FULL")
    if wrong.errno in _RIGHTS:
        who = f" of {shown(wrong.filename)}" if wrong.filename else ""
        return unusable(place, f"its rights{who} do not allow it ({said}); give them to this user")
    if wrong.errno == errno.EIO:
        return unusable(place, f"the disk failed ({said}); nothing was stored that anybody will see", "RELET-IO")
    return unusable(place, f"{said}; nothing was stored that anybody will see. Try again")
