"""Start processes so that no fork of this one, in any thread, holds on to what a start is waiting for.

A start waits for the end of a pipe that tells whether it went well. A fork at that moment, without an exec, holds the
pipe open for as long as it lives, and with it whoever starts a process. So starts and forks take turns.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from typing import Any


class _Turn:
    """Of starts and forks; a fresh one in a forked child, whose other threads are not there to give it back."""

    lock = threading.RLock()


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """As `subprocess.Popen`. Raises what that raises."""
    with _Turn.lock:
        return subprocess.Popen(command, **options)  # noqa: S603 - programs of this package


def _before_fork() -> None:
    _Turn.lock.acquire()


def _after_fork_in_parent() -> None:
    _Turn.lock.release()


def _after_fork_in_child() -> None:
    _Turn.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
