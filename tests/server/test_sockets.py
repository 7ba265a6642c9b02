"""The service at a real socket: what is silent, slow, half said or no HTTP takes no place from anybody else."""

import hashlib
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from relet.server import bodies, files, lines
from relet.server.serving import bind, run, serve
from tests.server.served import Served
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.slow


class Listening(Served):
    """The same service, in a thread of its own, at a free port of loopback."""

    def __init__(self, folder):
        super().__init__(folder, hosts=["127.0.0.1"])
        told = threading.Event()
        self.server = serve(self.app, self.service, bind(("127.0.0.1", 0)), lambda _address: told.set())
        self._thread = threading.Thread(target=run, args=(self.server,), daemon=True)
        self._thread.start()
        assert told.wait(PATIENCE_S)
        self.port = self.server.bound.getsockname()[1]

    @property
    def connections(self):
        return self.server.server_state.connections

    def connect(self, *said):
        line = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        for text in said:
            line.sendall(text if isinstance(text, bytes) else text.encode())
        return line

    def close(self):
        self.server.should_exit = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        super().close()


@pytest.fixture
def listening(tmp_path):
    listening = Listening(tmp_path)
    yield listening
    listening.close()


@pytest.fixture
def opened():
    with ExitStack() as opened:
        yield opened


def head(method, path, key=None, *more):
    given = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *more]
    if key is not None:
        given.append(f"Authorization: Bearer {key}")
    return "\r\n".join([*given, "", ""])


def answer_of(line):
    """All that comes until the service has said what it says to one request."""
    said = b""
    while b"\r\n\r\n" not in said and (piece := line.recv(65_536)):
        said += piece
    return said


def status_of(line):
    return int(answer_of(line).split(b" ", 2)[1])


def is_over(line):
    """Has the service ended the connection; waits for it."""
    try:
        while line.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


def test_small_answers_do_not_wait_for_one_another(listening, opened):
    """Of a socket that does not name its protocol the event loop sets no such option: 40 ms for each answer."""
    opened.enter_context(listening.connect())
    (line,) = eventually(lambda: listening.connections)
    assert line.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("said", ["", "G", "POST /v1/claim HTTP/1.1\r\nHost: 127.0.0.1\r\nX-", "\r\n"], ids=range(4))
def test_who_connects_and_does_not_ask_is_let_go(listening, opened, monkeypatch, said):
    monkeypatch.setattr(lines, "IDLE_S", 0.2)
    line = opened.enter_context(listening.connect(said))
    began = time.monotonic()
    assert is_over(line)
    assert time.monotonic() - began < 5
    assert eventually(lambda: not listening.connections)


def test_nor_does_a_byte_after_an_answer_keep_a_connection_for_ever(listening, opened, monkeypatch):
    monkeypatch.setattr(lines, "IDLE_S", 0.2)
    line = opened.enter_context(listening.connect(head("GET", "/healthz")))
    assert status_of(line) == 200
    line.sendall(b"G")
    began = time.monotonic()
    assert is_over(line)
    assert time.monotonic() - began < 5


def test_who_asks_stays_though_nothing_is_to_be_told(listening, opened, monkeypatch):
    monkeypatch.setattr(lines, "IDLE_S", 0.1)
    line = opened.enter_context(listening.connect(head("GET", "/v1/news", listening.key())))
    assert status_of(line) == 200
    silent = opened.enter_context(listening.connect())
    assert is_over(silent)
    assert listening.connections, "the stream is there after who asked nothing has gone"
    listening.db.submit("q", id="t")
    told = b""
    while b"data:" not in told:
        told += line.recv(65_536)


def test_silent_connections_give_way_to_who_asks(listening, opened, monkeypatch):
    monkeypatch.setattr(lines, "CONNECTIONS_MAX", 30)
    monkeypatch.setattr(lines, "ROOM", 10)
    key = listening.key()
    for _ in range(100):
        opened.enter_context(listening.connect("GET /v1/who"))
    for _ in range(3):
        line = opened.enter_context(listening.connect(head("GET", "/v1/whoami", key)))
        assert status_of(line) == 200
    assert len(listening.connections) <= 21


def test_a_half_sent_body_is_waited_for_so_long_and_leaves_nothing(listening, opened, monkeypatch):
    monkeypatch.setattr(bodies, "BODY_S", 0.2)
    key, before = listening.key(), listening.rows()
    half = head("POST", "/v1/submit", key, "Content-Type: application/json", "Content-Length: 1000")
    halves = [opened.enter_context(listening.connect(half, b'{"queue":"q"')) for _ in range(50)]
    other = opened.enter_context(listening.connect(head("GET", "/v1/whoami", key)))
    assert status_of(other) == 200, "and others are served meanwhile"
    assert {status_of(line) for line in halves} == {408}
    assert listening.rows() == before


def test_a_body_that_is_too_large_is_refused_while_it_is_sent(listening, opened):
    more = ("Content-Type: application/json", f"Content-Length: {1 << 40}")
    line = opened.enter_context(listening.connect(head("POST", "/v1/submit", listening.key(), *more)))
    assert status_of(line) == 413


def test_a_revoked_key_ends_its_streams_within_two_seconds_and_no_others(listening, opened):
    key, other = listening.key(), listening.key()
    streams = [
        opened.enter_context(listening.connect(head("GET", path, key)))
        for path in ("/v1/news", "/v1/changes/stream", "/v1/news", "/v1/changes/stream")
    ]
    kept = opened.enter_context(listening.connect(head("GET", "/v1/news", other)))
    for line in (*streams, kept):
        assert status_of(line) == 200
    listening.revoke(key)
    began = time.monotonic()
    for line in streams:
        last = b""
        while piece := line.recv(65_536):
            last += piece
            if b"0\r\n\r\n" in last:
                break
        assert b"RELET-NO-CREDENTIAL" in last
    assert time.monotonic() - began < 2
    listening.db.submit("q", id="t")
    while b"data:" not in kept.recv(65_536):
        pass


def test_nobody_is_switched_to_another_protocol(listening, opened):
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")  # fmt: skip
    for path in ("/v1/news", "/v1/changes/stream", "/v1/claim", "/ws"):
        line = opened.enter_context(listening.connect(head("GET", path, None, *upgrade)))
        assert status_of(line) == 401
    h2c = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    line = opened.enter_context(listening.connect(head("GET", "/v1/claim", listening.key(), *h2c)))
    assert status_of(line) == 405


@pytest.mark.parametrize("said", [
    b"\x16\x03\x01\x02\x00\x01\x00", b"\x00" * 100, b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    b"POST /v1/claim HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/claim HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST /v1/claim HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
], ids=range(11))  # fmt: skip
def test_what_is_no_good_http_is_refused_and_hurts_nobody(listening, opened, said):
    line = opened.enter_context(listening.connect(said))
    found = answer_of(line)
    assert not found or 400 <= int(found.split(b" ", 2)[1]) < 500, found
    assert b"Traceback" not in found
    other = opened.enter_context(listening.connect(head("GET", "/healthz")))
    assert status_of(other) == 200


def test_requests_one_behind_the_other_are_each_judged_for_themselves(listening, opened):
    """What stands behind a good one is no part of it."""
    two = head("GET", "/v1/whoami", listening.key()) + head("GET", "/v1/whoami")
    line = opened.enter_context(listening.connect(two))
    said = b""
    while said.count(b"HTTP/1.1 ") < 2:
        said += line.recv(65_536)
    assert [int(part[:3]) for part in said.split(b"HTTP/1.1 ")[1:]] == [200, 401]


def stored(listening, key, size):
    data = b"x" * size
    digest = hashlib.sha256(data).hexdigest()
    line = listening.connect(head("PUT", f"/v1/artifacts/{digest}", key, f"Content-Length: {size}"), data)
    with line:
        assert line.recv(100).startswith(b"HTTP/1.1 204")
    return digest


def test_a_download_that_nobody_takes_is_ended_and_holds_no_place_any_more(listening, opened, monkeypatch):
    monkeypatch.setattr(files, "PIECE_S", 0.3)
    monkeypatch.setattr(files, "DOWNLOADS_PER_KEY_MAX", 1)
    key = listening.key()
    digest = stored(listening, key, 8 << 20)
    silent = opened.enter_context(socket.socket())
    silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    silent.connect(("127.0.0.1", listening.port))
    silent.sendall(head("GET", f"/v1/artifacts/{digest}", key).encode())
    eventually(lambda: listening.connections)
    eventually(lambda: not listening.connections)
    with listening.connect(head("HEAD", f"/v1/artifacts/{digest}", key)) as line:
        assert status_of(line) == 200


def test_a_key_has_so_many_downloads_at_one_time(listening, opened):
    key = listening.key()
    digest = stored(listening, key, 8 << 20)
    for _ in range(files.DOWNLOADS_PER_KEY_MAX):
        line = opened.enter_context(socket.socket())
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        line.connect(("127.0.0.1", listening.port))
        line.sendall(head("GET", f"/v1/artifacts/{digest}", key).encode())
        assert line.recv(12) == b"HTTP/1.1 200"
    with listening.connect(head("GET", f"/v1/artifacts/{digest}", key)) as more:
        assert more.recv(12) == b"HTTP/1.1 429"
    with listening.connect(head("GET", f"/v1/artifacts/{digest}", listening.key(name="another"))) as other:
        assert other.recv(12) == b"HTTP/1.1 200"
