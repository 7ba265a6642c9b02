"""own_bytes: which bytes a tenant may read, since it names them or has sent them; asked by the service alone."""

from __future__ import annotations

from typing import Final

import msgspec

from relet.core.fields import Digests, Name
from relet.core.operation import Operation
from relet.core.tx import Tx

_MARK: Final = "\0sent\0"
"""No payload holds this character, and so no other digest under the store's key is ever one of these."""


class AskOwnBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Of these digests, for the tenant or for one key of it that is bound to queues."""

    digests: Digests
    queues: list[Name] | None = None
    """Whose tasks must name them; null for all."""
    key_id: Name | None = None
    """Whose sending counts; null for the tenant's."""


class OwnBytes(msgspec.Struct, frozen=True, kw_only=True):
    """What is named, and what tells of each digest that its bytes were sent."""

    named: list[str]
    marks: list[str]
    """In the order of the digests: a text that nobody but this store can make, kept beside the bytes when they come.

    Who only knows a digest has not the bytes, and gets none by naming it.
    """


async def own_bytes(tx: Tx, ask: AskOwnBytes) -> OwnBytes:
    """One look for all of them."""
    whose = f"{_MARK}{tx.tenant}\0{ask.key_id or ''}\0"
    return OwnBytes(
        named=await tx.find_named(ask.digests, ask.queues),
        marks=[tx.fingerprint(f"{whose}{digest}") for digest in ask.digests],
    )


# Not in the catalog: a mark that is told to who asks would be one that anybody can store.
OWN_BYTES: Final = Operation(
    "own_bytes", AskOwnBytes, OwnBytes, own_bytes, "Whose bytes these are.", writes=False, for_agents=False
)
