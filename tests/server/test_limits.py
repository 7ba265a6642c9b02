"""Everything has a limit: how much, how slowly and how badly somebody may ask, and what is left of it."""

import asyncio
import json
import threading
import time
from collections import Counter

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relet.core.access import Role
from relet.core.catalog import BY_NAME, OPERATIONS
from relet.core.rules.claim import Claim
from relet.core.rules.inspect import FindTask
from relet.core.rules.submit import NewTask, Submit
from relet.core.wire import encode
from relet.server import bodies, files, routes
from relet.server.bodies import BODY_BYTES_MAX
from relet.server.counted import Counted
from relet.server.streams import STREAMS_PER_KEY_MAX
from tests.server.served import ask
from tests.server.world import World, raw
from tests.waiting import PATIENCE_S, eventually

# -- how many at once ------------------------------------------------------------------------------------------------


def test_so_many_are_open_for_each_key_and_for_all():
    counted = Counted(2, 3, "streams")
    one, two, three = counted.one("a"), counted.one("a"), counted.one("b")
    for each in (one, two, three):
        each.__enter__()
    for key, told in (("a", "this key has 2"), ("c", "the service has 3")):
        with pytest.raises(Exception, match=told):
            counted.one(key).__enter__()
    two.__exit__(None, None, None)
    with counted.one("a"):
        pass
    one.__exit__(None, None, None)
    three.__exit__(None, None, None)
    assert counted._open == {}


def test_a_key_has_so_many_streams_and_no_more(served):
    key, other = served.key(), served.key()

    async def crowd():
        going, answers = asyncio.Event(), [[] for _ in range(STREAMS_PER_KEY_MAX + 20)]
        streams = [
            asyncio.create_task(ask(served.app, "GET", "/v1/news", key=key, leaves=going, said=said))
            for said in answers
        ]
        await until(lambda: all(answers))
        assert Counter(said[0]["status"] for said in answers) == {200: STREAMS_PER_KEY_MAX, 429: 20}
        assert (await ask(served.app, "GET", "/v1/news", key=other)).status == 200
        assert (await ask(served.app, "GET", "/v1/whoami", key=key)).status == 200
        going.set()
        await asyncio.gather(*streams)
        assert (await ask(served.app, "GET", "/v1/news", key=key)).status == 200, "those that ended make room"

    served.loop.run_until_complete(crowd())


async def until(condition):
    await asyncio.to_thread(eventually, condition)


# -- how much --------------------------------------------------------------------------------------------------------


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(served):
    reply = served.ask("POST", "/v1/submit", key=served.key(), headers=[("Content-Length", str(BODY_BYTES_MAX + 1))])
    assert (reply.status, reply.code, reply.json["facts"]["field"]) == (413, "RELET-TOO-LARGE", "body")


def test_and_one_that_does_not_say_how_large_it_is_where_it_passes_it(served):
    piece = b" " * (1 << 20)
    reply = served.ask("POST", "/v1/submit", key=served.key(), pieces=[piece] * 40)
    assert (reply.status, reply.code) == (413, "RELET-TOO-LARGE")


@pytest.mark.parametrize("told", ["-1", "1e9", "x", "", "\uff19", "0x10", "9" * 400])
def test_an_odd_length_is_no_fault(served, told):
    reply = served.ask(
        "POST", "/v1/task", key=served.key(), body=b'{"task_id":"t"}', headers=[("Content-Length", told)]
    )
    assert reply.status in (404, 413), reply


def test_half_sent_bodies_of_one_key_leave_room_for_others(served, monkeypatch):
    """What is in hand at one time is bounded, whoever holds it back."""
    monkeypatch.setattr(bodies, "BODIES_BYTES_MAX", 4 << 20)
    greedy, other = served.key(), served.key()

    async def crowd():
        over, answers = asyncio.Event(), [[] for _ in range(10)]
        halves = [
            asyncio.create_task(ask(
                served.app, "POST", "/v1/submit", key=greedy, pieces=[b" " * (1 << 20), None], leaves=over, said=said
            ))
            for said in answers
        ]  # fmt: skip
        await until(lambda: sum(map(bool, answers)) == 8)
        assert {said[0]["status"] for said in answers if said} == {429}, "two of ten hold half of all the room"
        assert await task_of(other) == 404
        over.set()
        await asyncio.gather(*halves)
        assert await task_of(greedy) == 404, "what is gone takes no room"

    async def task_of(key):
        return (await ask(served.app, "POST", "/v1/task", key=key, body=b'{"task_id":"t"}')).status

    served.loop.run_until_complete(crowd())


def test_a_body_that_does_not_come_is_waited_for_so_long_and_no_longer(served, monkeypatch):
    monkeypatch.setattr(bodies, "BODY_S", 0.05)
    key, before = served.key(), served.rows()
    reply = served.ask("POST", "/v1/claim", key=key, pieces=[b"{", None], leaves=asyncio.Event())
    assert (reply.status, reply.code, reply.json["retryable"]) == (408, "RELET-SLOW", True)
    assert served.rows() == before


def test_a_body_whose_sender_goes_away_is_no_request(served):
    key, before = served.key(), served.rows()
    reply = served.ask("POST", "/v1/claim", key=key, pieces=[b"{", None], leaves=gone())
    assert (reply.status, reply.code) == (408, "RELET-SLOW")
    assert served.rows() == before


def gone():
    event = asyncio.Event()
    event.set()
    return event


@pytest.mark.parametrize("constant", ["PIECE_S", "BYTES_PER_S_LEAST"])
def test_an_upload_that_stops_or_drips_is_ended_and_leaves_nothing(served, monkeypatch, constant):
    monkeypatch.setattr(files, "PIECE_S", 0.05)
    monkeypatch.setattr(files, "BYTES_PER_S_LEAST", 1e-9 if constant == "PIECE_S" else 1e12)
    before = set(served.folder.rglob("*"))
    pieces = [b"x", None] if constant == "PIECE_S" else [b"x"] * 10_000
    reply = served.ask("PUT", f"/v1/artifacts/{'0' * 64}", key=served.key(), pieces=pieces, leaves=asyncio.Event())
    assert (reply.status, reply.code) == (408, "RELET-SLOW")
    assert set(served.folder.rglob("*")) == before


def test_a_claim_whose_asker_goes_away_leaves_no_lease_behind(served):
    world, key = World(served, "a"), served.key()
    served.backend.call(Claim(holder="A", task_id=world.id("ready")))
    before = served.rows()
    body = encode(Claim(holder="B", queues=["q"]))
    assert served.ask("POST", "/v1/claim?wait=30", key=key, body=body, leaves=gone()).body == b"[]"
    served.db.submit("q", id="later")
    assert served.backend.call(FindTask(task_id="later")).state == "ready"
    assert served.rows()["leases"] == before["leases"]


def test_a_claim_that_waits_ends_when_its_key_is_revoked(served, monkeypatch):
    key, asked, seen = served.key(), served.service.ask, []

    async def seeing(*given):
        found = await asked(*given)
        seen.append(given)
        return found

    monkeypatch.setattr(served.service, "ask", seeing)

    async def revoked_meanwhile():
        waiting = asyncio.create_task(ask(
            served.app, "POST", "/v1/claim?wait=30", key=key, body=encode(Claim(holder="B", queues=["q"])),
            leaves=asyncio.Event(),
        ))  # fmt: skip
        await until(lambda: seen)
        served.revoke(key)
        return await asyncio.wait_for(waiting, PATIENCE_S)

    began = time.monotonic()
    reply = served.loop.run_until_complete(revoked_meanwhile())
    assert (reply.status, reply.code) == (401, "RELET-NO-CREDENTIAL")
    assert time.monotonic() - began < 10, "long before its wait is over"


# -- how badly -------------------------------------------------------------------------------------------------------

NO_JSON = {
    "nothing": b"", "a space": b" ", "half": b'{"queue":"q"', "text": b"queue=q", "no utf-8": b'{"queue":"\xff"}',
    "a lone surrogate": b'{"queue":"\\ud800"}', "two": b"{}{}", "NaN": b'{"n":NaN}', "a comment": b"{}//",
    "deep": b"[" * 100_000, "deep objects": b'{"a":' * 50_000, "NUL": b"\x00", "BOM": b"\xef\xbb\xbf{}",
    "utf-16": '{"queue":"q"}'.encode("utf-16"), "a list": b"[]", "a number": b"1", "null": b"null",
    "a huge number": b'{"n":' + b"9" * 10_000 + b"}", "a key twice": b'{"queue":"a","queue":"q"}',
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_what_is_no_request_is_refused_and_told_why(served, operation):
    key, before = served.key(), served.rows()
    for what, body in NO_JSON.items():
        reply = served.ask("POST", f"/v1/{operation.name}", key=key, body=body)
        assert (reply.status, reply.is_problem) == (400, True), (what, reply)
        assert reply.json["facts"]["field"], what
    assert served.rows() == before


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_field_of_a_wrong_type_or_one_that_there_is_not_is_named(served, operation):
    body = example(served, operation)
    key, before = served.key(), served.rows()
    for field in operation.request.__struct_fields__:
        wrong = {**body, field: {"no": ["such", "thing"]}}
        reply = served.ask("POST", f"/v1/{operation.name}", key=key, body=json.dumps(wrong).encode())
        if reply.status in (200, 404):
            assert field in ANYTHING, (field, reply)
            continue
        assert (reply.status, reply.is_problem) == (400, True), (field, reply)
        assert reply.json["facts"]["field"].startswith(field), (field, reply)
    reply = served.ask("POST", f"/v1/{operation.name}", key=key, body=json.dumps({**body, "zzz": 1}).encode())
    assert (reply.status, reply.json["facts"]["field"]) == (400, "zzz")
    assert served.rows() == before


ANYTHING = {"value", "payload", "ask", "receipt"}
"""Fields that hold any JSON."""


def example(served, operation):
    """A request about what nobody has, as JSON."""
    from tests.server.test_tenants import nobody

    if not hasattr(served, "examples"):
        world = World(served, "z")
        served.examples = {}
        for request in [*world.requests(), *world.sweeping()]:
            served.examples.setdefault(type(request), msgspec.json.decode(encode(nobody(request))))
    return served.examples[operation.request]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(BY_NAME)), st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=10,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_whatever_is_sent_is_answered_and_is_no_fault(served, name, body):
    if not hasattr(served, "fuzz_key"):
        served.fuzz_key = served.key()
    reply = served.ask("POST", f"/v1/{name}", key=served.fuzz_key, body=body)
    assert reply.status < 500, reply


@pytest.mark.parametrize("headers", [
    [("Relet-Patience-Ms", "-1")], [("Relet-Patience-Ms", "x")], [("Relet-Patience-Ms", "\uff19")],
    [("Relet-Patience-Ms", "9" * 30)],
])  # fmt: skip
def test_an_odd_patience_is_refused_by_its_header(served, headers):
    reply = served.call(FindTask(task_id="t"), served.key(), headers=headers)
    assert (reply.status, reply.json["facts"]["field"]) == (400, "relet-patience-ms")


@pytest.mark.parametrize("wait", ["-1", "61", "x", "", "1e3", "9" * 400, "1d", "%00"])
def test_an_odd_wait_is_refused_and_claims_nothing(served, wait):
    World(served, "a")
    key, before = served.key(), served.rows()
    reply = served.ask("POST", f"/v1/claim?wait={wait}", key=key, body=encode(Claim(holder="B", queues=["q"])))
    assert (reply.status, reply.json["facts"]["field"]) == (400, "wait")
    assert served.rows() == before


@pytest.mark.parametrize(("name", "value"), [
    ("after", "x"), ("after", "-1"), ("after", "9" * 40), ("after", "%EF%BC%99"), ("queue", "a%00b"),
    ("queue", "a" * 201),
    ("queue", ""), ("task_id", ""), ("task_id", "a%0ab"), ("after", "9" * 18),
])  # fmt: skip
def test_an_odd_place_to_go_on_from_is_refused_by_its_name(served, name, value):
    reply = served.ask("GET", f"/v1/changes/stream?{name}={value}", key=served.key())
    assert (reply.status, reply.json["facts"]["field"]) == (400, name), reply


def test_an_odd_last_event_id_is_too(served):
    reply = served.ask("GET", "/v1/changes/stream", key=served.key(), headers=[("Last-Event-ID", "x")])
    assert (reply.status, reply.json["facts"]["field"]) == (400, "Last-Event-ID")


def test_a_role_is_told_before_what_would_be_wrong_with_the_body(served):
    for body in NO_JSON.values():
        assert served.ask("POST", "/v1/claim", key=served.key(Role.VIEWER), body=body).status == 403


def test_a_large_request_is_not_read_in_the_loop_where_heartbeats_are_answered(served, monkeypatch):
    threads, read = [], routes.received

    def noting(operation, body):
        threads.append(threading.current_thread())
        return read(operation, body)

    monkeypatch.setattr(routes, "received", noting)
    key = served.key()
    for size in (1, routes.READ_BYTES_MAX):
        task = NewTask(id=f"t{size}", input=raw("x" * size))
        assert served.call(Submit(queue="q", kind="k", tasks=[task]), key).status == 200
    small, large = threads
    assert small is threading.main_thread()
    assert large is not threading.main_thread()
