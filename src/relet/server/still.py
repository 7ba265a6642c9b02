"""Is the key of what stays open good still: a stream, or a claim that waits, does not outlive its key."""

from __future__ import annotations

import time
from typing import Final

from starlette.requests import HTTPConnection

from relet.core.access import digest_of
from relet.server.gate import KeyRing, credential_of
from relet.server.rates import KEPT_MAX

AGAIN_S: Final = 0.75
"""An answer is so old at most, and is asked for so often at most: twice this is how long a revoked key goes on."""


class Still:
    """One look for all that one key holds open."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._looked: dict[str, float] = {}

    async def check(self, request: HTTPConnection) -> None:
        """Raises `Forbidden` once it is not."""
        key = credential_of(request)
        name = digest_of(key or "")
        if time.monotonic() - self._looked.get(name, float("-inf")) < AGAIN_S:
            return
        self._looked.pop(name, None)
        await self._ring.who(key)
        if len(self._looked) >= KEPT_MAX:
            self._looked.clear()
        self._looked[name] = time.monotonic()
