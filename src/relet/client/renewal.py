"""What callers say of a renewal, as a request; apart from the other verbs, since shell hooks need nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from relet.core import border, limits
from relet.core.border import invalid, shown
from relet.core.model import Handle
from relet.core.rules.renew import Renew

THREAD: Final = "thread"
PROCESS: Final = "process"


def ttl_ms(value: Any) -> int | None:
    """A ttl: long enough to be renewed, short enough to notice a death by."""
    return border.maybe_duration_ms("ttl", value, least=limits.TTL_MS_MIN, most=limits.TTL_MS_MAX)


def renewal(handles: Sequence[Handle], ttl: Any = None) -> Renew:
    """Leases to renew."""
    if len(handles) > limits.RENEW_ITEMS_MAX:
        raise invalid("leases", f"has {len(handles)} items; give at most {limits.RENEW_ITEMS_MAX}")
    return Renew(handles=list(handles), ttl_ms=ttl_ms(ttl))


def from_beside(heartbeat: Any) -> bool:
    """Is the heartbeat to come from a process beside this one. Raises `Invalid`."""
    if heartbeat not in (THREAD, PROCESS):
        raise invalid("heartbeat", f'is {shown(heartbeat)}; give "thread", or "process" for work that holds the GIL')
    if sys.platform == "win32" and heartbeat == PROCESS:
        raise invalid("heartbeat", "from a process beside this one needs Linux or macOS; leave it out here")
    return bool(heartbeat == PROCESS)
