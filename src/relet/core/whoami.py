"""What a service says of itself and of who asks: the first answer of a connection."""

from __future__ import annotations

from typing import Final

import msgspec

API: Final = 1
"""Grows when an older client could not understand a newer service any more."""
PREFIX: Final = f"/v{API}"
"""Of all paths but those of health, figures and the document."""
PATIENCE: Final = "relet-patience-ms"
"""The header that says how long the service may wait for a busy store."""


class Whoami(msgspec.Struct, frozen=True, kw_only=True):
    """Who the credential is, and which store it reaches."""

    tenant: str
    name: str
    """Of the credential."""
    role: str
    scopes: list[str]
    queues: list[str] | None
    """Those that it is bound to; None for all."""
    store_id: str
    version: str
    api: int
