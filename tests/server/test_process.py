"""`relet serve` as it is started: where it listens, what it says, and what a crowd costs it."""

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from relet.cli.settings import BY_NAME
from relet.server.serving import is_loopback, listen_at
from tests.server.test_sockets import head, status_of
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.faults
RELET = [sys.executable, "-m", "relet"]
LISTENS = "0A"


@contextmanager
def serving(folder, *options):
    url = f"sqlite:///{folder / 'relet.db'}"
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(
            [*RELET, "serve", "--url", url, *options], stdout=said, stderr=said, env={**os.environ, "NO_COLOR": "1"}
        )
        try:
            text = folder / "said"
            found = eventually(lambda: re.search(r" at http://(\S+):(\d+)", text.read_text()) or process.poll())
            assert not isinstance(found, int), text.read_text()
            yield process, int(found[2])
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def token(folder, *options):
    url = f"sqlite:///{folder / 'relet.db'}"
    done = subprocess.run(
        [*RELET, "token", "create", "--url", url, *options], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def listening_of(pid):
    """Local addresses at which a process listens, as Linux tells them."""
    inodes = {
        match[1]
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if (match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link)))
    }
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            parts = line.split()
            if parts[3] == LISTENS and parts[9] in inodes:
                host, port = parts[1].split(":")
                found.append((host, int(port, 16)))
    return found


def test_adv_04_and_05_by_default_it_listens_at_one_port_of_loopback_and_nowhere_else(tmp_path):
    with serving(tmp_path, "--listen", "127.0.0.1:0") as (process, port):
        assert listening_of(process.pid) == [("0100007F", port)]


def test_the_default_of_listen_is_loopback():
    assert is_loopback(listen_at(BY_NAME["listen"].default)[0])


@pytest.mark.parametrize("where", ["0.0.0.0:0", "[::]:0", "198.51.100.1:0"])
def test_adv_06_without_keys_it_does_not_listen_where_others_reach_it(tmp_path, where):
    done = subprocess.run(
        [*RELET, "serve", "--url", f"sqlite:///{tmp_path / 'relet.db'}", "--listen", where, "--insecure-no-auth"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode not in (0, None)
    assert "relet token create" in done.stderr


def test_adv_01_and_22_a_fresh_service_opens_nothing_and_says_no_key(tmp_path):
    key = token(tmp_path, "ann", "--role", "admin")
    with serving(tmp_path, "--listen", "127.0.0.1:0") as (_process, port), ExitStack() as opened:

        def asked(*request):
            line = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
            line.sendall(head(*request).encode())
            return status_of(line)

        assert asked("GET", "/v1/whoami", key) == 200
        for path in ("/", "/v1/whoami", "/metrics", "/openapi.json", "/docs", "/redoc", "/v1/news", f"/{key}"):
            assert asked("GET", path) == 401
            assert asked("GET", path, key[:-1]) == 401
        said = (tmp_path / "said").read_text()
    assert key.split("_", 2)[2] not in said + (tmp_path / "said").read_text()


def rss_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1_024


def test_thousands_of_silent_connections_and_hundreds_of_streams_are_borne(tmp_path):
    keys = [token(tmp_path, f"k{n}", "--role", "viewer") for n in range(3)]
    with serving(tmp_path, "--listen", "127.0.0.1:0") as (process, port), ExitStack() as opened:

        def connect(text):
            line = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
            line.sendall(text.encode())
            return line

        assert status_of(connect(head("GET", "/v1/whoami", keys[0]))) == 200
        before = rss_mib(process.pid)
        streams = [connect(head("GET", "/v1/news", key)) for key in keys for _ in range(150)]
        assert {status_of(line) for line in streams} == {200}
        for _ in range(4_500):
            connect("GET /v1/who")
        slowest = 0
        for _ in range(20):
            began = time.monotonic()
            assert status_of(connect(head("GET", "/v1/whoami", keys[0]))) == 200
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 2
        assert rss_mib(process.pid) - before < 250
