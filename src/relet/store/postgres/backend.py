"""One store, bound to one tenant: the narrow waist of the PostgreSQL engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from relet.core.again import surely
from relet.core.backend import OwnTransaction
from relet.core.bond import Bond
from relet.core.errors import Invalid
from relet.core.rules.tenants import FindTenants, Tenant
from relet.noticing import Watch
from relet.store.postgres.clock import Steering
from relet.store.postgres.engine import PostgresStore
from relet.store.postgres.own import call_within, own_transaction

if TYPE_CHECKING:
    from relet.core.upkeep import BackedUp, Verified, VerifiedLog


class PostgresBackend:
    """Answers requests; one whose outcome is unknown is repeated once, where repeating is safe."""

    answers_side_by_side: Final = True
    """The server takes as many at once as there are connections."""

    def __init__(self, url: str, tenant: str, schema: str | None = None, *, clock: Steering | None = None) -> None:
        self.store = PostgresStore(url, schema, clock=clock)
        self.tenant = tenant
        self.url = self.store.url
        self._looks = threading.local()

    @property
    def place(self) -> str:
        """The database, without a password."""
        return self.store.place

    def call(self, ask: Any, *, patience_ms: int | None = None) -> Any:
        """The answer to one request."""
        return self.call_of(self.tenant, ask, patience_ms)

    def call_of(self, tenant: str, ask: Any, patience_ms: int | None = None) -> Any:
        """The answer to one request of another tenant, for an operator of the store."""
        return surely(lambda asked: self.store.call(asked, tenant, patience_ms), ask)

    def tenants(self, after: str, limit: int) -> list[Tenant]:
        """A page of the tenants of the store, by name."""
        answer: list[Tenant] = self.store.call(FindTenants(after=after, limit=limit), self.tenant)
        return answer

    def operate(self, ask: Any) -> Any:
        """The answer to a request that belongs to no tenant: of API keys, or of the audit log."""
        return surely(lambda asked: self.store.call(asked, self.tenant), ask)

    def operate_at_once(self, ask: Any) -> None:
        """Never: a server is some way off."""

    def begin_to_serve(self) -> int:
        """A service begins, beside others perhaps: an outage of the database is found by each transaction."""
        return 0

    def bind(self) -> Bond | None:
        """Nothing on this machine proves to a server that a process has ended: the ttl decides."""
        return None

    def vouch(self, lock: str) -> None:
        """Nothing is bound to a process here."""

    def bury(self) -> int:
        """Nobody is proven to be dead here."""
        return 0

    def call_within(self, transaction: Any, ask: Any) -> Any:
        """The answer to one request, inside the caller's own open transaction."""
        return call_within(self.store, transaction, ask, self.tenant)

    def transaction(self, seconds: float) -> AbstractContextManager[OwnTransaction]:
        """A transaction of the user's own on this database."""
        return own_transaction(self.store, self.tenant, seconds)

    def wait_for_change(self, seconds: float) -> None:
        """Return when somebody else may have committed, at the latest after `seconds`."""
        if not hasattr(self._looks, "watch"):
            self._looks.watch = self.store.watch()
        self._looks.watch.wait(seconds)

    def watch(self) -> Watch:
        """A waiter of its own for a thread."""
        return self.store.watch()

    def verify(self, exists: Callable[[str], bool] | None = None) -> Verified:
        """What does not hold of the store."""
        from relet.store.postgres.verify import verify

        return verify(self.store, exists)

    def verify_log(self) -> VerifiedLog:
        """What does not hold of the audit log."""
        from relet.store.postgres.verify import verify_log

        return verify_log(self.store)

    def backup(self, to: str, exists: Callable[[str], bool] | None = None) -> BackedUp:  # noqa: ARG002
        """PostgreSQL has tools of its own for that."""
        raise Invalid(
            f"backup: {self.place} is a database of a server, which is backed up by the server's own means: pg_dump "
            f"--schema={self.store.schema} --no-unlogged-table-data, or its continuous archive. The first client "
            "that writes into a restored one begins a new epoch of tokens",
            field="url",
        )

    def close(self) -> None:
        """Let go of the connections."""
        self.store.close()
