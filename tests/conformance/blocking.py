"""The blocking client over SQLite."""

from relet.testing.stores import open_store
from tests.conformance.on_sqlite import SqliteRoute


class BlockingRoute(SqliteRoute):
    def __init__(self, folder):
        super().__init__(folder)
        self.db = open_store(folder, self.clock)
        self.other = open_store(folder, self.clock)
        self.stranger = open_store(folder, self.clock, tenant="elsewhere")

    def call(self, ask):
        return self.db.backend.call(ask)

    def locked(self):
        return self.locked_against(self.db)

    def close(self):
        super().close()
        for client in (self.db, self.other, self.stranger):
            client.close()
