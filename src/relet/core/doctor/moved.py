"""What a place says of the store that was in it, and that goes on elsewhere."""

from __future__ import annotations

import msgspec


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Where it went, and the sentence that everybody is told who comes to the old place."""

    to: str
    told: str
