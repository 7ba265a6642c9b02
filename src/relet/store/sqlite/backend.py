"""One store, bound to one tenant: the narrow waist of the SQLite engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from relet.core.again import surely
from relet.core.backend import OwnTransaction
from relet.core.bond import Bond
from relet.core.rules.claim import Claim
from relet.core.rules.tenants import FindTenants, Tenant
from relet.store.sqlite import death
from relet.store.sqlite.clock import StoreClock
from relet.store.sqlite.engine import SqliteStore
from relet.store.sqlite.own import own_transaction
from relet.store.sqlite.place import url_of
from relet.store.sqlite.watch import Watch

if TYPE_CHECKING:
    from relet.core.upkeep import BackedUp, Verified, VerifiedLog


class SqliteBackend:
    """Answers requests; one whose outcome is unknown is repeated once, where repeating is safe."""

    answers_side_by_side: Final = False
    """The file has one write lock."""

    def __init__(self, url: str, tenant: str, *, clock: StoreClock | None = None, state: Path | None = None) -> None:
        self.store = SqliteStore(url, clock=clock, state=state)
        self.tenant = tenant

    @property
    def place(self) -> str:
        """The file, in full."""
        return self.store.place

    @property
    def url(self) -> str:
        """The file as a URL that holds in any folder."""
        return "sqlite://" if self.store.path is None else url_of(self.store.path)

    def call(self, ask: Any, *, patience_ms: int | None = None) -> Any:
        """The answer to one request."""
        answer = self._call(ask, patience_ms)
        if isinstance(ask, Claim) and not answer and self.bury():
            return self._call(ask, patience_ms)
        return answer

    def _call(self, ask: Any, patience_ms: int | None) -> Any:
        return surely(lambda asked: self.store.call(asked, self.tenant, patience_ms), ask)

    def call_of(self, tenant: str, ask: Any) -> Any:
        """The answer to one request of another tenant, for an operator of the file."""
        return self.store.call(ask, tenant)

    def tenants(self, after: str, limit: int) -> list[Tenant]:
        """A page of the tenants of the file, by name."""
        answer: list[Tenant] = self.store.call(FindTenants(after=after, limit=limit), self.tenant)
        return answer

    def operate(self, ask: Any) -> Any:
        """The answer to a request that belongs to no tenant: of API keys, or of the audit log."""
        return surely(lambda asked: self.store.call(asked, self.tenant), ask)

    def operate_at_once(self, ask: Any) -> Any | None:
        """As `operate` for what only reads; None where another thread looks just now."""
        return self.store.answer_at_once(ask, self.tenant)

    def begin_to_serve(self) -> int:
        """A service begins: what is open gets a whole ttl from now; how many leases that were."""
        from relet.store.sqlite.served import begin_to_serve

        return begin_to_serve(self.store)

    def bind(self) -> Bond | None:
        """A lock on a file beside the store."""
        return death.bind(self.store)

    def vouch(self, lock: str) -> None:
        """Act under leases that are bound to another process, without loosening them."""
        self.store.identity.bonds.vouch(lock)

    def bury(self) -> int:
        """End what dead processes held."""
        return death.bury(self.store)

    def call_within(self, transaction: Any, ask: Any) -> Any:
        """The answer to one request, inside the caller's own open transaction."""
        return self.store.call_within(transaction, ask, self.tenant)

    def transaction(self, seconds: float) -> AbstractContextManager[OwnTransaction]:
        """A transaction of the user's own on this file."""
        return own_transaction(self.store, self.tenant, seconds)

    def wait_for_change(self, seconds: float) -> None:
        """Return when somebody else committed, at the latest after `seconds`."""
        self.store.wait_for_change(seconds)

    def watch(self) -> Watch:
        """A waiter of its own for a thread."""
        return self.store.watch()

    def verify(self, exists: Callable[[str], bool] | None = None) -> Verified:
        """What does not hold of the file."""
        return self.store.verify(exists)

    def verify_log(self) -> VerifiedLog:
        """What does not hold of the audit log."""
        return self.store.verify_log()

    def backup(self, to: str, exists: Callable[[str], bool] | None = None) -> BackedUp:
        """A verified copy of the file."""
        return self.store.backup(to, exists)

    def close(self) -> None:
        """Let go of the file."""
        death.leave(self.store)
        self.store.close()
