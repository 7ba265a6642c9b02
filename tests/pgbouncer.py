"""PgBouncer before a server of the tests: many clients share few connections, each for the length of one transaction.

with PostgresServer() as server, PgBouncer(server) as pooler, server.database(at=pooler.url) as url: ...
"""

import contextlib

import psycopg

from tests.servers.server import Server
from tests.servers.unprivileged import free_port, installed

# Fewer connections than a test has clients, so that what a session was left with is met by somebody else. A server
# that was away is tried again after one second instead of fifteen.
SETTINGS = {
    "pool_mode": "transaction", "default_pool_size": 4, "max_client_conn": 200, "auth_type": "trust",
    "server_login_retry": 1,
}  # fmt: skip


class PgBouncer(Server):
    """`settings` are lines of its own configuration."""

    NAME = "pgbouncer"

    def __init__(self, server, **settings):
        self.port = free_port()
        self._server = server
        self._settings = SETTINGS | settings

    def url(self, database="postgres"):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def _prepare(self):
        self._program = installed("pgbouncer", "pgbouncer")
        (self.folder / "users").write_text('"postgres" ""\n', encoding="utf-8")
        settings = {
            "listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "", "auth_file": "users",
            **self._settings,
        }  # fmt: skip
        lines = ["[databases]", f"* = host={self._server.folder} port={self._server.port}", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in settings.items()]
        (self.folder / "ini").write_text("\n".join([*lines, ""]), encoding="utf-8")

    def _command(self):
        return [self._program, "ini"]

    def _answers(self):
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url()):
            return True
        return False
