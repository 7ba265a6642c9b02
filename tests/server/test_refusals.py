"""What a refusal of the service says to HTTP, and does not say of the machine that it is on."""

import asyncio
import hashlib

from starlette.exceptions import HTTPException
from starlette.requests import Request

from relet.server.app import _no_route
from tests.server.served import scope_of


def test_who_asks_by_a_wrong_method_is_told_the_right_ones(served):
    reply = served.ask("DELETE", "/v1/renew", key=served.key())
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    reply = served.ask("DELETE", f"/v1/artifacts/{'0' * 64}", key=served.key())
    assert set(reply.headers["allow"].split(", ")) == {"GET", "HEAD", "PUT"}


def test_where_nobody_says_which_methods_are_right_it_is_no_fault(served):
    request = Request(scope_of("DELETE", "/v1/renew"))
    for headers in (None, {}):
        reply = asyncio.run(_no_route(request, HTTPException(405, headers=headers)))
        assert (reply.status_code, "allow" in reply.headers) == (405, False)
        assert b"RELET-WRONG-METHOD" in reply.body and b"GET /openapi.json" in reply.body


def test_bytes_that_are_others_are_refused_without_a_word_of_where_they_lay(served):
    digest = hashlib.sha256(b"these").hexdigest()
    reply = served.ask("PUT", f"/v1/artifacts/{digest}", key=served.key(), body=b"those")
    assert (reply.status, reply.json["facts"]) == (400, {"field": "sha256"})
    assert "relet-upload" not in reply.json["detail"] and "/" not in reply.json["detail"]


def test_both_ways_to_say_where_a_stream_goes_on_are_looked_at(served):
    reply = served.ask(
        "GET", "/v1/changes/stream?after=x", key=served.key(), headers=[("Last-Event-ID", "0")]
    )  # fmt: skip
    assert (reply.status, reply.json["facts"]["field"]) == (400, "after")
