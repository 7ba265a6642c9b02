"""The blocking client over SQLite."""

from functools import cached_property

from relet.testing.stores import open_store
from tests.conformance.on_sqlite import SqliteRoute


class BlockingRoute(SqliteRoute):
    def __init__(self, folder):
        super().__init__(folder)
        self.db = self.opened(open_store(folder, self.clock))

    @cached_property
    def other(self):
        return self.opened(open_store(self.folder, self.clock))

    @cached_property
    def stranger(self):
        return self.opened(open_store(self.folder, self.clock, tenant="elsewhere"))

    def call(self, ask):
        return self.db.backend.call(ask)

    def locked(self):
        return self.locked_against(self.db)
