"""The exit codes, and what each one means. Scripts read them, so none ever changes its meaning."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOTHING = 3
    FORBIDDEN = 4
    LOST = 5
    HELD = 6
    WAITING = 7
    FINDINGS = 8
    NOT_FOUND = 10
    CONFLICT = 11
    UNAVAILABLE = 75
    UNKNOWN = 76
    TIMEOUT = 124
    INTERRUPTED = 130


MEANINGS: Final[dict[Exit, str]] = {
    Exit.OK: "done as asked",
    Exit.FAILED: "failed: the task failed or was cancelled, or the command itself broke",
    Exit.USAGE: "wrong usage, or a value that is not valid",
    Exit.NOTHING: "nothing to claim",
    Exit.FORBIDDEN: "not allowed",
    Exit.LOST: "lease lost: stop this work and discard it",
    Exit.HELD: "held by another",
    Exit.WAITING: "waiting for a decision",
    Exit.FINDINGS: "findings were reported (doctor, verify, crashtest)",
    Exit.NOT_FOUND: "not found",
    Exit.CONFLICT: "conflict with the task's state, or with an earlier request",
    Exit.UNAVAILABLE: "store unreachable or busy; nothing was written, try again",
    Exit.UNKNOWN: "outcome unknown; look before repeating",
    Exit.TIMEOUT: "not finished in time",
    Exit.INTERRUPTED: "interrupted",
}
