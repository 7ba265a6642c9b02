"""What a conformance test is given: a fresh store, the clock that it obeys, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from relet.client.blocking import Client
from relet.core.backend import Request
from relet.testing.clock import Clock

Row = dict[str, Any]
Rows = dict[str, list[Row]]
"""Stored rows by table: `tasks`, `inputs`, `leases`, `checkpoints`, `queues`, `events`, `steps`, `waits`, `signals`,
`artifacts`, `effects` and `evidence`, in the order made."""


class Route(Protocol):
    """One way to a store. Every test gets a fresh one, and calls it in a blocking style, whatever is behind."""

    @property
    def clock(self) -> Clock:
        """What store and holders obey."""

    @property
    def folder(self) -> Path:
        """Where the store and its artifacts are."""

    @property
    def db(self) -> Client:
        """A client of the tenant `default`, or something that has its verbs and its leases."""

    @property
    def other(self) -> Client:
        """A second client of the same tenant, that shares nothing with the first but the store."""

    @property
    def stranger(self) -> Client:
        """A client of another tenant of the same store."""

    @property
    def out_of_reach(self) -> Sequence[str]:
        """Statements that a user's own transaction must refuse: on relet's tables, and those that end it."""

    @property
    def objects_per_upload(self) -> int:
        """How many a place keeps of bytes that were attached: a service notes beside them who sent them."""

    def call(self, ask: Request) -> Any:
        """The answer to a request, past whatever the client would have checked."""

    def rows(self) -> Rows:
        """All that the store keeps for ever, as it stands; looking at it changes nothing."""

    def locked(self) -> AbstractContextManager[Callable[[], None]]:
        """Hold what every writer has to wait for. The function returns once a call of `db` is waiting."""
