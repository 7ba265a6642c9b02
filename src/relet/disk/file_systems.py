"""Which kind of file system a folder is on, and the refusal of shared drives, whose locks do not reach everybody."""

from __future__ import annotations

import os
import sys

from relet.core.errors import Unavailable
from relet.core.mounts import NETWORK_FILE_SYSTEMS, UNKNOWN, kind_under

MOUNTS = "/proc/self/mountinfo"


def kind_of(folder: str | os.PathLike[str], mounts: str = MOUNTS) -> str:
    """The kind of file system under a folder; "unknown" where the platform does not tell."""
    if not sys.platform.startswith("linux"):
        return UNKNOWN
    with open(mounts, encoding="utf-8", errors="surrogateescape") as table:
        return kind_under(os.path.realpath(folder), table)


def refuse_network(path: str | os.PathLike[str], kind: str, why: str) -> None:
    """Raise `Unavailable` for what is on a shared drive; `why` says what does not hold there, and the way out."""
    if kind in NETWORK_FILE_SYSTEMS:
        raise Unavailable(
            f"{path} is on a {kind} file system, where {why}",
            code="RELET-NETWORK-FILE", path=str(path), file_system=kind,
        )  # fmt: skip
