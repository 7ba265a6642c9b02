"""What an engine lends to the transaction port: a runner of named statements, and a place for refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from relet.core.model import Instants, LostReason
from relet.core.tx import LeaseRow
from relet.store.rows import Row

Params = dict[str, Any]


class Runner(Protocol):
    """One open transaction of an engine."""

    @property
    def secret(self) -> Callable[[int, str], str]:
        """The secret that proves a token of a task, and no other one."""

    def is_ours(self, lock: str) -> bool:
        """Does this process hold the lock, or has it inherited it."""

    def own_locks(self) -> list[str]:
        """Those that are known to be ours."""

    async def all(self, name: str, params: Params) -> list[Row]: ...
    async def one(self, name: str, params: Params) -> Row | None: ...
    async def do(self, name: str, params: Params) -> None: ...
    async def do_row(self, name: str, row: msgspec.Struct) -> None:
        """As `do`, with the row's attributes for parameters."""

    @property
    def held_back(self) -> Any:
        """Writes that the engine has not been handed yet; nothing is read, and nothing committed, before they are."""

    def send(self) -> None:
        """Hand them over."""

    async def one_listed(self, name: str, values: tuple[Any, ...]) -> Row | None:
        """As `one`, with values in the order of `LISTED`; for the hottest statements."""

    async def do_listed(self, name: str, values: tuple[Any, ...]) -> None: ...
    def do_all(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        """As `do_listed`, for many rows of what may be held back: they are, and nothing is awaited."""

    async def do_many(self, name: str, params: Sequence[Params]) -> None: ...
    async def instants(self) -> Instants:
        """Store time and wall time, read after what this transaction has locked so far."""

    async def next_token(self) -> int: ...
    def next_event(self) -> int:
        """The number of the event that is added next; 0 where the engine keeps no chains."""

    def fingerprint(self, text: str) -> str:
        """A digest under a key of the store's own."""

    def saw_lapse(self) -> None:
        """A lapse is written here: this transaction must be durable before anyone is told."""


class Refusal(msgspec.Struct, frozen=True):
    """A refused write under a lease, to be written down apart from the transaction that refused it."""

    lease: LeaseRow
    task_id: str
    reason: LostReason
    current: int
    late_ms: int | None
    kept: str | None
