"""The part of the port that fair turns and limits ask for: shares in their order, places, the bucket of a rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from relet.core.model import Instants

if TYPE_CHECKING:
    from relet.core.tx import QueueRow, TaskRow


class LeasedOf(NamedTuple):
    """Leases of one queue that are not recorded as ended: how many, how many live, how many of a share."""

    leased: int
    live: int
    live_of_share: int


class TurnsTx(Protocol):
    """Asked by claims of queues that have shares or limits, and by whoever looks at queues."""

    async def open_shares(self, queue: str) -> None: ...
    async def lock_turns(
        self, queue: str, kinds: Sequence[str] | None, after: str, most: int | None, limit: int
    ) -> tuple[list[TaskRow], Instants]: ...
    async def lock_before_shares(
        self, queue: str, kinds: Sequence[str] | None, shared_from: int
    ) -> TaskRow | None: ...
    async def note_turn(self, row: QueueRow) -> None: ...
    async def take_place(self, queue: str, share: str, token: int) -> None: ...
    async def count_places(self, queue: str, share: str | None) -> int: ...
    async def clear_places(self, queue: str | None, share: str | None) -> None: ...
    async def fill_places(self, queue: str) -> None: ...
    async def drop_places(self, queue: str) -> None: ...
    async def find_queues(self, after: str, limit: int) -> list[str]: ...
    async def count_leased_of(self, queue: str, share: str | None) -> LeasedOf: ...
