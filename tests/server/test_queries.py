"""What a query names is heeded, or refused."""

import hashlib

import pytest

from relet.core.problem import TOO_MANY
from relet.core.rules.inspect import Changes
from relet.server.rates import Rate
from tests.server.served import Served


@pytest.mark.parametrize(("method", "target"), [
    ("GET", "/v1/changes/stream?queu=texts"), ("GET", "/v1/news?queue=q"), ("GET", "/v1/audit?befor=1"),
    ("GET", "/v1/whoami?x"), ("GET", "/openapi.json?x=1"), ("GET", "/metrics?x=1"),
    ("POST", "/v1/claim?wiat=20"), ("POST", "/v1/submit?wait=20"),
    ("GET", f"/v1/artifacts/{'0' * 64}?x=1"), ("PUT", f"/v1/artifacts/{'0' * 64}?x="),
])  # fmt: skip
def test_a_parameter_that_a_path_does_not_know_is_refused(served, method, target):
    reply = served.ask(method, target, key=served.key(), body=b"{}")
    assert (reply.status, reply.json["facts"]["field"]) == (400, "query")
    assert repr(target.partition("?")[2].partition("=")[0]) in reply.json["detail"]


@pytest.mark.parametrize("target", ["/healthz?at=1", "/readyz?at=1"])
def test_a_probe_is_answered_whatever_it_says(served, target):
    assert served.ask("GET", target).status in {200, 503}


@pytest.mark.parametrize(("method", "target", "name"), [
    ("GET", "/v1/changes/stream?queue=a&queue=b", "queue"), ("GET", "/v1/audit?limit=1&limit=1", "limit"),
    ("POST", "/v1/claim?wait=1&wait=2", "wait"),
])  # fmt: skip
def test_one_that_is_given_twice_is_refused(served, method, target, name):
    reply = served.ask(method, target, key=served.key(), body=b"{}")
    assert (reply.status, reply.json["facts"]["field"]) == (400, name)


@pytest.mark.parametrize("more", ["", "?queue=q", "?queue=other"])
def test_a_stream_goes_on_at_the_last_event_and_not_beyond_it(served, more):
    served.db.submit("q", 1)
    end = served.backend.call(Changes()).cursor
    key = served.key()
    reply = served.ask("GET", f"/v1/changes/stream{more}", key=key, headers=[("Last-Event-ID", str(end))])
    assert (reply.status, reply.body) == (200, b"id: %d\n\n" % end)
    reply = served.ask("GET", f"/v1/changes/stream{more}", key=key, headers=[("Last-Event-ID", str(end + 1))])
    assert (reply.status, reply.json["facts"]["field"]) == (400, "Last-Event-ID")
    assert f"which is {end}:" in reply.json["detail"]


def test_head_tells_how_many_bytes_there_are(served):
    digest, key = hashlib.sha256(b"a page").hexdigest(), served.key()
    assert served.ask("PUT", f"/v1/artifacts/{digest}", key=key, body=b"a page").status == 204
    head, got = (served.ask(method, f"/v1/artifacts/{digest}", key=key) for method in ("HEAD", "GET"))
    assert (head.status, head.body, got.body) == (200, b"", b"a page")
    assert head.headers == got.headers
    assert head.headers["content-length"] == "6"


def test_whoever_asks_too_often_is_told_the_limit_under_a_title_of_its_own(tmp_path):
    served = Served(tmp_path, rate=Rate(1, 100))
    try:
        key = served.key()
        refused = [served.ask("GET", "/v1/whoami", key=key) for _ in range(2)][1]
        assert (refused.status, refused.code) == (429, TOO_MANY)
        assert refused.json["title"] == "More was asked than may be asked at once"
        assert "100 requests a second for each key" in refused.json["detail"]
        assert "relet serve --rate" in refused.json["detail"]
    finally:
        served.close()
