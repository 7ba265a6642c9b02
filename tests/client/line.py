"""A client over a line that can be cut, or that hands out answers of the test's own; what is sent is noted."""

import contextlib

from relet.client.blocking import Client
from relet.core.errors import Unavailable
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew

SILENCE = Unavailable("nobody answers", code="RELET-UNREACHABLE")


class Line:
    def __init__(self, inner):
        self._inner = inner
        self.broken = None
        self.sent = []
        self.patience_ms = []

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def call(self, ask, *, patience_ms=None):
        self.sent.append(ask)
        self.patience_ms.append(patience_ms)
        if self.broken is not None:
            raise self.broken
        return self._inner.call(ask, patience_ms=patience_ms)

    @contextlib.contextmanager
    def cut(self, error=SILENCE):
        """Whoever asks meanwhile hears this error."""
        self.broken = error
        try:
            yield
        finally:
            self.broken = None

    def renewals(self):
        return [ask for ask in self.sent if isinstance(ask, Renew)]

    def releases(self):
        return [ask for ask in self.sent if isinstance(ask, Release)]


class Holder(Client):
    """A client whose keeper runs only when the test tells it to, one round at a time."""

    def __init__(self, db):
        self.line = Line(db.backend)
        super().__init__(self.line, clock=db.clock)
        self.store = db

    def hold(self, ttl=60, **options):
        """The lease of a new task, given to the keeper."""
        task = self.store.submit("q", 1, ttl=ttl, **options)
        lease = self.claim(task_id=task.id)
        self.line.sent.clear()
        self.line.patience_ms.clear()
        return lease

    def round(self, *leases):
        """One look of the keeper at these leases."""
        self.keeper.tend([lease.belief for lease in leases])

    def pass_s(self, seconds, *leases):
        """Let time go by, and then let the keeper look."""
        self.clock.advance(seconds)
        self.round(*leases)
