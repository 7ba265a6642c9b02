"""What a client of a service is told: of bad addresses and keys, of what is not there, of what cannot be asked."""

import http.server
import os
import socket
import threading
import time

import pytest

import relet
from relet.client.http.backend import HttpBackend
from relet.core.access import Role
from tests.server.keys import made_key
from tests.server.reached import reached
from tests.waiting import eventually

TOLD_S = 5


@pytest.fixture
def reach(tmp_path):
    with reached(f"sqlite:///{tmp_path / 'work.db'}") as reach:
        yield reach


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://", "names no host"), ("http://:8787", "names no host"), ("http://host:0", "names no host"),
        ("http://host:99999", "is no address"), ("http://host:x", "is no address"),
        ("http://me:secret@host:8787", "carries a credential"),
        ("http://me:secret?@host:8787", "is no address"), ("http://host:8787?key=secret", "more than a host"),
        ("http://host:8787#secret", "more than a host"),
        ("http://host/v1", "leave it out: http://host$"), ("http://host/at/v1/", "leave it out: http://host/at$"),
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_and_shows_no_secret(url, says):
    with pytest.raises(relet.Invalid, match=says) as refused:
        relet.connect(url)
    assert refused.value.detail["field"] == "url"
    assert "secret" not in str(refused.value)


def test_nobody_there_is_told_at_once_and_that_nothing_was_written():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(relet.Unavailable, match=r"cannot be reached.*nothing was written") as away:
        relet.connect(f"http://127.0.0.1:{port}")
    assert away.value.code == "RELET-NO-SERVICE"


def test_https_at_a_port_without_tls_is_told_as_that(reach):
    plain = reach.url.removeprefix("http://")
    with pytest.raises(relet.Unavailable, match=f"speaks no TLS; is it http://{plain}$"):
        relet.connect(f"https://{plain}")


def test_who_listens_and_says_nothing_is_given_up_within_five_seconds():
    began = time.monotonic()
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(relet.Unavailable, match="gave no answer"),
    ):
        relet.connect(f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert time.monotonic() - began < TOLD_S


class Other(http.server.BaseHTTPRequestHandler):
    """Something else that speaks HTTP."""

    status = 404

    def do_GET(self):
        self.send_response(type(self).status)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"nope")

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (404, relet.NotFound), (401, relet.Forbidden), (407, relet.Forbidden), (400, relet.Invalid),
        (302, relet.Invalid), (429, relet.Unavailable), (503, relet.Unavailable), (502, relet.Unavailable),
        (200, relet.Unavailable),
    ],
)  # fmt: skip
def test_what_is_no_service_of_relets_is_known_as_such(status, raised):
    handler = type("Handler", (Other,), {"status": status})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with pytest.raises(raised, match=r"nope"):
                relet.connect(f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()


def test_without_a_key_the_way_to_one_is_told(reach, monkeypatch):
    monkeypatch.delenv("RELET_API_KEY", raising=False)
    with pytest.raises(relet.Forbidden, match="relet token create") as refused:
        relet.connect(reach.url)
    assert refused.value.code == "RELET-NO-CREDENTIAL"
    assert "$RELET_API_KEY, or name a file with it in $RELET_API_KEY_FILE" in str(refused.value)


def test_who_knows_the_id_of_a_key_has_not_the_key(reach):
    good, other = (made_key(reach.home.backend) for _ in range(2))
    forged = good[:-43] + other[-43:]
    with pytest.raises(relet.Forbidden, match="is none of this service's") as refused:
        HttpBackend(reach.url, key=forged)
    assert refused.value.code == "RELET-NO-CREDENTIAL"
    assert "has no key" not in str(refused.value)


def test_a_key_comes_from_the_environment_or_from_a_file(reach, monkeypatch, tmp_path):
    key = made_key(reach.home.backend, Role.WORKER)
    monkeypatch.setenv("RELET_API_KEY", key)
    with relet.connect(reach.url) as db:
        assert db.backend.who.role == "worker"
    monkeypatch.delenv("RELET_API_KEY")
    (tmp_path / "key").write_text(f"{key}\n")
    monkeypatch.setenv("RELET_API_KEY_FILE", str(tmp_path / "key"))
    with relet.connect(reach.url) as db:
        assert db.backend.who.role == "worker"


@pytest.mark.parametrize("text", ["two\nlines", "", "a key"])
def test_a_file_without_a_key_is_refused_and_not_shown(reach, monkeypatch, tmp_path, text):
    monkeypatch.delenv("RELET_API_KEY", raising=False)
    (tmp_path / "key").write_text(text)
    monkeypatch.setenv("RELET_API_KEY_FILE", str(tmp_path / "key"))
    with pytest.raises(relet.Invalid, match="is no key"):
        relet.connect(reach.url)
    monkeypatch.setenv("RELET_API_KEY_FILE", str(tmp_path / "gone"))
    with pytest.raises(relet.Invalid, match="cannot be read"):
        relet.connect(reach.url)


def test_the_tenant_is_that_of_the_key(reach, monkeypatch):
    monkeypatch.setenv("RELET_API_KEY", made_key(reach.home.backend, tenant="acme"))
    with relet.connect(reach.url) as db, relet.connect(reach.url, tenant="acme"):
        task = db.submit("q")
        assert (task.tenant, db.backend.tenant) == ("acme", "acme")
        assert reach.home.tasks() == []
    with pytest.raises(relet.Invalid, match="the credential is of 'acme', not of 'other'"):
        relet.connect(reach.url, tenant="other")


def test_what_needs_the_database_itself_is_refused(reach, tmp_path):
    db = reach.client()
    db.submit("q")
    lease = db.claim("q")
    with pytest.raises(relet.Invalid, match="is a service"), lease.transaction():
        pass
    with pytest.raises(relet.Invalid, match="is a service"):
        db.submit("q", tx=object())
    with pytest.raises(relet.Invalid, match="is a service"):
        db.verify()
    with pytest.raises(relet.Invalid, match="is a service"):
        db.backup(tmp_path / "copy.db")
    with pytest.raises(relet.Invalid, match="where the service runs"):
        db.collect("1d")
    lease.complete()


def test_bytes_go_up_and_come_down_and_are_not_there_for_others(reach):
    db = reach.client()
    db.submit("q")
    lease = db.claim("q")
    kept = lease.attach("page", b"<html>" * 1_000)
    assert db.open(kept.uri).read() == b"<html>" * 1_000
    large = os.urandom(9 << 20)
    assert lease.open("page").read()[:6] == b"<html>"
    assert db.open(lease.attach("large", large).uri).read() == large
    lease.complete({"text": "x" * 500_000})
    assert db.result(lease.task_id) == {"text": "x" * 500_000}
    stranger = reach.client(made_key(reach.home.backend, tenant="other"))
    with pytest.raises(relet.NotFound):
        stranger.open(kept.uri)


def test_a_forked_child_has_a_line_of_its_own(reach):
    db = reach.client()
    db.submit("q")
    before, told, go_on = reach.proxy.connections, os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            status = 0 if db.claim("q") is not None else 1
            os.write(told[1], b"!")
            os.read(go_on[0], 1)
        finally:
            os._exit(status)
    os.close(told[1])
    try:
        assert os.read(told[0], 1) == b"!"
        assert [task.state for task in db.tasks()] == ["leased"]
        assert reach.proxy.connections == before + 1
    finally:
        os.write(go_on[1], b"!")
        _, status = os.waitpid(pid, 0)
        for end in (told[0], *go_on):
            os.close(end)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_worker_does_everything_over_http(reach):
    app, db = relet.App(), reach.client()

    @app.task("q")
    async def work(run, n):
        await run.step("double", lambda: n * 2)
        return n

    tasks = [work.submit(db, n) for n in range(10)]
    assert app.run_until_idle(db, concurrency=4) == 10
    assert [db.result(task.id) for task in tasks] == list(range(10))


def test_who_waits_for_a_result_gets_it(reach):
    db = reach.client()
    task = db.submit("q")
    found = []
    thread = threading.Thread(target=lambda: found.append(db.result(task.id, wait=10)))
    thread.start()
    reach.home.claim("q").complete("done")
    thread.join(10)
    assert found == ["done"]


def test_a_closed_client_leaves_no_thread_behind(reach):
    backend = HttpBackend(reach.url, key=made_key(reach.home.backend))
    watch = backend.watch()
    eventually(lambda: watch._teller.is_told)
    backend.close()
    eventually(lambda: not backend._news._thread.is_alive())
