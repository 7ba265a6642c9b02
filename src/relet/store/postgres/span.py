"""The instants of one transaction: no lease that its rule looks at may run out among them.

Who waits for a lock is told a later instant than before. Under a lease that was live by the earlier one, and is not
by the later, nothing may be written: all of it is undone, and the rule is asked again from the start.
"""

from __future__ import annotations

from relet.core.model import Instants


class Span:
    """From the first instant that a rule was given to the last one that was read."""

    def __init__(self) -> None:
        self._from_ms: int | None = None
        self._upto_ms = 0
        self._ends_ms: int | None = None

    def reach(self, at: Instants) -> None:
        """An instant was read."""
        self._upto_ms = at.now_ms

    def begin(self) -> None:
        """What was read last is given to the rule."""
        if self._from_ms is None:
            self._from_ms = self._upto_ms

    def look_at(self, expires_ms: int) -> None:
        """Until then an open lease is live."""
        if expires_ms > (self._upto_ms if self._from_ms is None else self._from_ms):
            self._ends_ms = expires_ms if self._ends_ms is None else min(expires_ms, self._ends_ms)

    @property
    def is_torn(self) -> bool:
        """Has a lease run out since the first instant."""
        return self.may_reach(self._upto_ms)

    def may_reach(self, most_ms: float) -> bool:
        """Might one have, if it is as late as that."""
        return self._ends_ms is not None and self._ends_ms <= most_ms

    def stand(self) -> None:
        """What was judged until here stands, however long it takes from here on."""
        self._ends_ms = None
