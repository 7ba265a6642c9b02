"""What callers say of a renewal, as a request; apart from the other verbs, since shell hooks need nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relet.core import border, limits
from relet.core.border import invalid
from relet.core.model import Handle
from relet.core.rules.renew import Renew


def ttl_ms(value: Any) -> int | None:
    """A ttl: long enough to be renewed, short enough to notice a death by."""
    return border.maybe_duration_ms("ttl", value, least=limits.TTL_MS_MIN, most=limits.TTL_MS_MAX)


def renewal(handles: Sequence[Handle], ttl: Any = None) -> Renew:
    """Leases to renew."""
    if len(handles) > limits.RENEW_ITEMS_MAX:
        raise invalid("leases", f"has {len(handles)} items; give at most {limits.RENEW_ITEMS_MAX}")
    return Renew(handles=list(handles), ttl_ms=ttl_ms(ttl))
