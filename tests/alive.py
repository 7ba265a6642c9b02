"""Is a process still there: what Linux says of it, asked while it may end at any moment."""

from pathlib import Path

GONE = "X"


def state_of(pid):
    """The letter of its state, as in `ps`. `X` once there is no such process, also since a moment ago."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        # The second is what a read is answered whose process ended after the file was opened.
        return GONE
    # The name, in brackets, may hold anything; the state comes after it.
    return told.rpartition(")")[2].split()[0]


def is_gone(pid):
    """Has it ended, whether or not anybody has asked for its exit code."""
    return state_of(pid) in "ZX"
