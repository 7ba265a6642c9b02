"""Of several addresses the one that answers is found, and that none of them does is told in time."""

import contextlib
import socket
import time

import pytest

import relet
from tests.postgres import PostgresServer

pytestmark = pytest.mark.postgres
TOLD_WITHIN_S = 5.0


@pytest.mark.parametrize("many", [1, 3, 7])
def test_addresses_that_are_silent_are_told_of_in_time(many):
    with contextlib.ExitStack() as stack:
        hosts = ",".join(stack.enter_context(silent()) for _ in range(many))
        began = time.monotonic()
        with pytest.raises(relet.Unavailable) as told:
            relet.connect(f"postgresql://somebody@{hosts}/database")
        assert time.monotonic() - began < TOLD_WITHIN_S
        assert told.value.code == "RELET-UNREACHABLE"


def test_a_name_with_several_addresses_is_told_of_in_time(monkeypatch):
    with silent() as host:
        port = int(host.partition(":")[2])
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))] * 3
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        began = time.monotonic()
        with pytest.raises(relet.Unavailable):
            relet.connect(f"postgresql://somebody@several.invalid:{port}/database")
        assert time.monotonic() - began < TOLD_WITHIN_S


def test_the_one_that_answers_is_found_behind_one_that_is_silent():
    with silent() as host, PostgresServer(tcp=True) as server:
        url = f"postgresql://postgres@{host},127.0.0.1:{server.port}/postgres"
        with relet.connect(url) as db:
            assert db.submit("q", id="t").created


@contextlib.contextmanager
def silent():
    """Where connections come about, and nobody says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(50)
        yield f"127.0.0.1:{listener.getsockname()[1]}"
