"""The narrow waist: a request goes in, its answer comes out, wherever the store is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from relet.core.rules.audit import AuditEntry, ListAudit
    from relet.core.upkeep import BackedUp, Verified, VerifiedLog
from relet.core.bond import Bond


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Root of every request; the catalog names the answer that belongs to it."""

    def at_odds(self) -> tuple[str, str] | None:
        """A field that does not go with the others, and why; None when all do. Asked of what a stranger sent."""
        return None


class Operated(Protocol):
    """A store itself, in the hands of whoever looks after it."""

    @property
    def place(self) -> str:
        """Where it is, in full."""

    def operate(self, ask: Any) -> Any:
        """The answer to a request that belongs to no tenant: of API keys, or of the audit log."""

    def operate_at_once(self, ask: Any) -> Any | None:
        """As `operate` for what only reads, within microseconds; None where that cannot be, and nothing was done."""

    def verify_log(self) -> VerifiedLog:
        """Does the chain of its audit log hold."""

    def begin_to_serve(self) -> int:
        """A service begins; of a store that only it could be reached by, how many leases got a whole ttl from now."""


class Audited(Protocol):
    """A service, in the hands of whoever may read its log."""

    def audit(self, ask: ListAudit) -> list[AuditEntry]:
        """A page of the audit log of the key's own tenant."""


class OwnTransaction(Protocol):
    """A user's own open transaction, in which requests can be answered too."""

    @property
    def connection(self) -> Any:
        """The driver's connection."""

    def call(self, ask: Any) -> Any:
        """The answer to one request inside of it."""


class Watch(Protocol):
    """One waiter for what others do; belongs to one thread, which any other may wake."""

    @property
    def silent_since(self) -> float | None:
        """Since when nothing proves that somebody would tell, by time.monotonic; None where one looks for oneself."""

    def wait(self, seconds: float) -> bool:
        """Return when somebody else may have changed the store, when woken, or after `seconds`; False for that."""

    def pause(self, seconds: float) -> bool:
        """Return when woken, or after `seconds`, whatever others do; was it woken."""

    def wake(self) -> None:
        """End the wait or pause that is under way, else the next one."""

    def close(self) -> None:
        """Nobody waits any more."""


class Backend(Protocol):
    """Something that answers requests for one tenant, and can be closed."""

    @property
    def place(self) -> str:
        """Where the store is, in full: an absolute path or an address."""

    @property
    def tenant(self) -> str:
        """The namespace of tasks that it is bound to."""

    @property
    def url(self) -> str:
        """What another process connects with to reach the same store."""

    @property
    def answers_side_by_side(self) -> bool:
        """Are requests of several threads answered at the same time, and not one after the other."""

    def call(self, ask: Any, *, patience_ms: int | None = None) -> Any:
        """The answer to one request. Raises `Refused`, `Unavailable` or `OutcomeUnknown`.

        `patience_ms` bounds the wait for a busy store; None means the engine's own bound.
        """

    def call_within(self, transaction: Any, ask: Any) -> Any:
        """As `call`, inside the caller's own open transaction on the same database."""

    def transaction(self, seconds: float) -> AbstractContextManager[OwnTransaction]:
        """A transaction of the user's own on the store's database, rolled back when it lasts longer."""

    def bind(self) -> Bond | None:
        """A lock that is free once this process and all that inherited it are gone, the same at each call.

        What is claimed under it lapses then. None where there is no such proof: in memory, on Windows, or in a
        folder that cannot be written.
        """

    def vouch(self, lock: str) -> None:
        """This process renews for the holder of that lock, and its end says nothing of the holder's."""

    def bury(self) -> int:
        """End the leases of processes that are proven to be dead; answers how many."""

    def wait_for_change(self, seconds: float) -> None:
        """Return when somebody else may have changed the store, at the latest after `seconds`."""

    def watch(self) -> Watch:
        """A waiter for a thread of its own, for as long as it has work to wait for."""

    def verify(self, exists: Callable[[str], bool] | None = None) -> Verified:
        """What does not hold of the whole store; `exists` tells whether the bytes of an address are there."""

    def backup(self, to: str, exists: Callable[[str], bool] | None = None) -> BackedUp:
        """A verified copy of the whole store, as it stands now, in a new file."""

    def close(self) -> None:
        """Let go of connections; calls after it raise `Unavailable`."""
