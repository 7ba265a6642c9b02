"""What one process knows about an open store: its id, its clock's base, its secrets, its marks."""

from __future__ import annotations

from typing import NamedTuple

from relet.core.model import Instants
from relet.store.epochs import hours_at
from relet.store.secrets import Secrets
from relet.store.sqlite.bonds import Bonds
from relet.store.sqlite.clock import StoreClock
from relet.store.sqlite.marks import Mark, OpenLock, SideFile


class ClockBase(NamedTuple):
    """Where store time stood when the monotonic clock of this boot stood at `mono_ms`."""

    mono_ms: int
    store_ms: int


class Identity:
    """Shared by the lanes of one engine; tokens are settled and covered under the store's write lock."""

    def __init__(
        self, *, store_id: str, secret_key: bytes, clock: StoreClock, base: ClockBase,
        side: SideFile | None, opened: OpenLock | None,
    ) -> None:  # fmt: skip
        self.store_id = store_id
        self.secret_key = secret_key
        self.clock = clock
        self.side = side
        self.opened = opened
        self._ahead_ms = base.store_ms - base.mono_ms
        self._latest_ms = 0
        secrets = Secrets(secret_key)
        self.secret, self.fingerprint = secrets.secret, secrets.fingerprint
        self._settled = False
        self.bonds = Bonds()

    def read_clock(self) -> Instants:
        """Both instants, now; store time never goes back within a process."""
        now_ms = self._latest_ms = max(self._ahead_ms + self.clock.mono_ms(), self._latest_ms)
        # What the class itself would do, without its detour; so it is where else a read of each transaction is made.
        return tuple.__new__(Instants, (now_ms, self.clock.wall_ms()))

    def must_settle_tokens(self) -> bool:
        """Is this the first grant since nobody had the store open."""
        if self._settled or self.opened is None:
            return False
        # Once it is so it stays so: only the first opener asks for it, and from now on this process is one before it.
        self._settled = not self.opened.must_burn
        return not self._settled

    def settle_tokens(self, issued: Mark, mark: Mark) -> tuple[Mark, Mark]:
        """Where tokens go on after the store was closed: past the block, or in a new epoch after a restore."""
        assert self.side is not None, "a store with a lock beside it has a side file"
        known = self.side.read()
        if known == mark:
            return mark, mark
        floor, _ = hours_at(self.clock.wall_ms())
        epoch = max(issued.epoch, known.epoch if known else 0, floor) + 1
        return Mark(epoch, 0), Mark(epoch, 0)

    def cover(self, mark: Mark) -> Mark:
        """Write the mark beside the store, durably, before any token up to it is given out."""
        if self.side is not None:
            self.side.write(mark)
        return mark
