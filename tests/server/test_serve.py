"""`relet serve` as a process: how soon it ends, what a restart does to those who work, and what it does not serve."""

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time

import httpx2
import pytest

import relet
from relet.cli.main import run
from relet.client.redacting import Redacting
from relet.core.rules.audit import ListAudit
from relet.core.rules.keys import RevokeKey
from relet.server.serving import bind, serve
from tests.server.keys import made_key
from tests.server.served import Served
from tests.waiting import Gate, eventually

RELET = [sys.executable, "-m", "relet"]
END_S = 2.0


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'work.db'}"


class Serving:
    """One process of `relet serve`; ended, or killed, with the test."""

    def __init__(self, url, port=0, *options):
        environ = {**os.environ, "RELET_URL": url}
        self.process = subprocess.Popen(
            [*RELET, "serve", "--listen", f"127.0.0.1:{port}", *options], env=environ, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        said = self.process.stderr.readline()
        assert "serving" in said, said + self.process.stderr.read()
        self.url = said.split()[-1]
        self.port = int(self.url.rpartition(":")[2])

    def end(self, number=signal.SIGTERM):
        """How long it took, and the code that it ended with."""
        began = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(10)
        return time.monotonic() - began, code


@pytest.fixture
def serving(url):
    with contextlib.ExitStack() as after:

        def serving(*options, port=0):
            found = Serving(url, port, *options)
            after.callback(found.process.stderr.close)
            after.callback(found.process.wait)
            after.callback(found.process.kill)
            return found

        yield serving


def refused(*arguments):
    return subprocess.run(
        [*RELET, "serve", *arguments], capture_output=True, text=True, timeout=30, check=False
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_within_two_seconds_with_streams_and_waiters_there(url, serving, tmp_path, number):
    with relet.connect(url) as home:
        key = made_key(home.backend)
    served = serving()
    headers = {"Authorization": f"Bearer {key}"}
    with (
        httpx2.Client(base_url=served.url, headers=headers, timeout=30) as http,
        contextlib.ExitStack() as streams,
    ):
        for path in ("/v1/news", "/v1/changes/stream?after=0"):
            stream = streams.enter_context(http.stream("GET", path))
            assert stream.status_code == 200
        took_s, code = served.end(number)
    assert (code, took_s < END_S) == (0, True)
    assert "Traceback" not in served.process.stderr.read()
    assert not (tmp_path / "work.db-wal").exists(), "the store was closed"


@pytest.mark.parametrize("listen", ["nowhere", "127.0.0.1:99999", "127.0.0.1:x", ":8787", "taken"])
def test_an_address_that_cannot_be_listened_at_is_told(url, listen):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        if listen == "taken":
            listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = refused("--url", url, "--listen", listen)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert listen in done.stderr


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
def test_without_a_key_that_is_good_it_does_not_listen_where_others_reach_it(url, listen):
    with relet.connect(url) as home:
        for key in (made_key(home.backend), made_key(home.backend)):
            home.backend.operate(RevokeKey(which=key.split("_")[1]))
        made_key(home.backend, expires_ms=1)
    done = refused("--url", url, "--listen", listen)
    assert (done.returncode, "serving" in done.stderr, "Traceback" in done.stderr) == (2, False, False)
    assert "no key of this store is good" in done.stderr
    assert "relet token create NAME --role worker" in done.stderr


def test_its_threads_will_share_arenas_before_any_of_them_begins(as_they_were, url, monkeypatch):
    told = []
    monkeypatch.setattr("relet.server.arenas.keep_few", lambda: told.append("few"))
    monkeypatch.setattr("relet.server.service.ThreadPoolExecutor", lambda *_, **__: told.append("threads"))
    monkeypatch.setattr("relet.server.serving.run", lambda _server: None)
    assert run(["serve", "--url", url, "--listen", "127.0.0.1:0", "--insecure-no-auth"]) == 0
    assert told == ["few", "threads", "threads"]


def test_with_one_it_does(as_they_were, url, monkeypatch):
    with relet.connect(url) as home:
        made_key(home.backend, expires_ms=1)
        made_key(home.backend)
    seen = []
    monkeypatch.setattr("relet.server.serving.run", lambda server: seen.append(server.bound.getsockname()[0]))
    assert run(["serve", "--url", url, "--listen", "0.0.0.0:0"]) == 0
    assert seen == ["0.0.0.0"]


def test_on_loopback_it_says_that_there_is_no_key_yet(url, serving):
    served = serving()
    served.end()
    assert "no good key yet" in served.process.stderr.read()
    with relet.connect(url) as home:
        made_key(home.backend)
    served = serving()
    served.end()
    assert "key" not in served.process.stderr.read()


def test_a_service_is_not_served_again(serving):
    served = serving("--insecure-no-auth")
    done = refused("--url", served.url, "--listen", "127.0.0.1:0")
    assert (done.returncode, "is a service already" in done.stderr) == (2, True)


def test_a_restart_costs_no_task_an_attempt_and_work_goes_on(url, serving, monkeypatch):
    with relet.connect(url) as home:
        monkeypatch.setenv("RELET_API_KEY", made_key(home.backend))
        first = serving()
        app, begun, gate = relet.App(), Gate(), Gate()

        @app.task("q")
        def work(run, n):
            begun.set()
            gate.pass_through()
            return n

        tasks = [work.submit(home, n) for n in range(4)]
        with relet.connect(first.url) as db, app.worker(db, concurrency=2):
            begun.pass_through()
            first.process.kill()
            first.process.wait()
            second = serving(port=first.port)
            assert second.url == first.url
            gate.set()
            eventually(lambda: all(home.task(task.id).state == "done" for task in tasks), within=30)
        assert all((home.task(task.id).attempt, home.task(task.id).losses) == (1, 0) for task in tasks)


def test_what_nobody_could_renew_while_it_was_down_is_held_again(url, serving):
    with relet.connect(url) as home:
        task = home.submit("q", ttl="5s")
        home.claim("q")
        eventually(lambda: not home.task(task.id).live)
        serving()
        assert home.task(task.id).live


@pytest.mark.parametrize("given", ["*", "0.0.0.0/0", "proxy.internal", "10.0.0.1/8"])
def test_what_cannot_be_believed_as_a_proxy_is_told(url, given):
    done = refused("--url", url, "--proxy", "127.0.0.1", "--proxy", given)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert f"proxy: '{given}'" in done.stderr


def test_behind_a_proxy_that_is_named_clients_are_known_by_their_own_addresses(url, serving):
    with relet.connect(url) as home:
        for options, address in ((("--proxy", "127.0.0.0/8", "--proxy", "::1"), "203.0.113.9"), ((), "127.0.0.1")):
            served = serving(*options)
            told = {"X-Forwarded-For": "198.51.100.4, 203.0.113.9", "X-Forwarded-Proto": "https"}
            assert httpx2.get(f"{served.url}/v1/tasks", headers=told).status_code == 401
            served.end()
            assert home.backend.operate(ListAudit(tenant=None, limit=1))[0].address == address


def test_a_rate_that_is_none_is_told(url):
    done = refused("--url", url, "--rate", "fast")
    assert (done.returncode, "Traceback" in done.stderr, "rate: 'fast' is no rate" in done.stderr) == (2, False, True)


def test_beyond_its_rate_a_key_is_refused_and_clients_of_ours_wait_as_long_as_they_are_told(
    url, serving, monkeypatch
):
    with relet.connect(url) as home:
        key, other = made_key(home.backend), made_key(home.backend)
        monkeypatch.setenv("RELET_API_KEY", other)
    served = serving("--rate", "300/m")
    with httpx2.Client(base_url=served.url, headers={"Authorization": f"Bearer {key}"}) as http:
        replies = [http.get("/v1/whoami") for _ in range(30)]
    refusals = [reply.headers["retry-after"] for reply in replies if reply.status_code == 429]
    assert set(refusals) == {"1"}
    assert len(refusals) >= 10
    began = time.monotonic()
    with relet.connect(served.url) as db:
        tasks = [db.submit("q", n) for n in range(14)]
        assert len({task.id for task in tasks}) == 14
    assert 0.8 < time.monotonic() - began < 10


def test_ob_02_a_service_that_cannot_open_its_store_is_nothing_that_answers(tmp_path):
    (tmp_path / "work.db").write_text("a letter")
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    done = refused("--url", f"sqlite:///{tmp_path / 'work.db'}", "--listen", f"127.0.0.1:{port}")
    assert (done.returncode != 0, "serving" in done.stderr) == (True, False)
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"http://127.0.0.1:{port}/healthz")


@pytest.mark.slow
def test_a_service_whose_file_was_taken_away_is_not_ready(serving, tmp_path):
    served = serving("--insecure-no-auth")
    for path in tmp_path.glob("work.db*"):
        path.unlink()
    reply = eventually(lambda: (told := httpx2.get(f"{served.url}/readyz")).status_code == 503 and told)
    assert "answered" in reply.json()["wrong"]


def test_health_tells_the_truth(serving):
    served = serving()
    assert [httpx2.get(f"{served.url}/{path}").status_code for path in ("healthz", "readyz")] == [200, 200]
    found = eventually(lambda: (told := httpx2.get(f"{served.url}/readyz").json())["wrote_ms_ago"] and told)
    assert (found["ready"], found["wrong"], found["answered_ms_ago"] < 4_000) == (True, [], True)
    assert found["looked_ms_ago"] < 4_000
    assert httpx2.get(f"{served.url}/x/readyz").status_code == 401


OF_OTHERS = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
"""By which a fault is told, with all that was under way."""


def guarded():
    return [any(isinstance(one, Redacting) for one in log.filters) for log in OF_OTHERS]


@pytest.fixture
def as_they_were():
    before = [list(log.filters) for log in OF_OTHERS]
    yield
    for log, filters in zip(OF_OTHERS, before, strict=True):
        log.filters[:] = filters


def test_loggers_of_others_are_guarded_where_the_process_is_ours(as_they_were, url, monkeypatch):
    seen = []
    monkeypatch.setattr("relet.server.serving.run", lambda _server: seen.append(guarded()))
    assert run(["serve", "--url", url, "--listen", "127.0.0.1:0", "--insecure-no-auth"]) == 0
    assert seen == [[True, True]]


def test_what_others_log_has_the_form_of_relets_own_lines(serving):
    served = serving()
    with socket.create_connection(("127.0.0.1", served.port)) as line:
        line.sendall(b"rubbish\r\n\r\n")
        assert b" 400 " in line.recv(100)
    served.end()
    said = served.process.stderr.read().splitlines()
    assert [one.split(" ", 2)[2] for one in said if "Invalid HTTP" in one] == [
        "WARNING uvicorn.error Invalid HTTP request received."
    ]


def test_and_left_alone_in_a_program_that_serves_by_itself(as_they_were, tmp_path):
    served, bound = Served(tmp_path), bind(("127.0.0.1", 0))
    with contextlib.closing(bound), contextlib.closing(served):
        serve(served.app, served.service, bound)
        assert guarded() == [False, False]
