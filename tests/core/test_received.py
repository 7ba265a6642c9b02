"""What a stranger sends becomes a request, or a refusal that names what is wrong; nothing else, whatever it is."""

import json
import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relet.core import limits
from relet.core.catalog import BY_NAME, OPERATIONS
from relet.core.errors import Invalid
from relet.core.payload import encoded
from relet.core.received import received
from relet.core.shapes import shape
from relet.core.wire import encode
from tests.core.stranger import whole
from tests.core.talk import talk

HANDLE = {"task_id": "t", "token": 5, "secret": "s"}
HELD = {"handle": HANDLE, "name": "n"}
ADDRESS = b'{"relet:artifact":"%s","size":300000}' % (b"a" * 64)
BODIES = sorted({encode(said.request) for said in talk()})


def ask(name, request):
    return received(BY_NAME[name], request if isinstance(request, bytes) else json.dumps(request).encode())


def refused(name, request):
    with pytest.raises(Invalid) as caught:
        ask(name, request)
    return caught.value.detail["field"], caught.value.message


def submission(text):
    return b'{"queue":"q","kind":"k","tasks":[{"id":"a","input":1},{"id":"b","input":%s}]}' % text


EMPTY = {"queue": "q", "kind": "k", "tasks": []}
CLAIM = {"holder": "A", "queues": ["q"]}
BYTES = {**HELD, "uri": f"artifact:{'b' * 64}", "sha256": "b" * 64, "size": 1}
QUESTION = {**HELD, "kind": "approval", "ask": 1}
ENTRY = {"task_id": "t", "name": "n", "kind": "accept", "by": "ann", "value": None}


@pytest.mark.parametrize(
    ("name", "request_", "field", "says"),
    [
        ("submit", {**EMPTY, "delay_ms": 1, "at_wall_ms": 1}, "at_wall_ms", "delay_ms"),
        ("claim", {"holder": "A"}, "queues", "give one of them"),
        ("claim", {**CLAIM, "task_id": "t"}, "queues", "give one of them"),
        ("claim", {**CLAIM, "handle": HANDLE}, "handle", "goes with task_id"),
        ("claim", {"holder": "A", "task_id": "t", "kinds": ["k"]}, "kinds", "does not go with task_id"),
        ("claim", {"holder": "A", "queues": ["q", "q"]}, "queues", "no two of them equal"),
        ("claim", {**CLAIM, "call_id": "lock~call"}, "call_id", "nor ~"),
        ("claim", {**CLAIM, "handlers": {"a": {}, "k\n": {}}}, "handlers", "not a name"),
        ("complete", {"completions": [], "next": {"holder": "A"}}, "next.queues", "give one of them"),
        ("attach", {**BYTES, "sha256": "a" * 64}, "uri", "other bytes"),
        ("attach", {**BYTES, "name": ".."}, "name", "path"),
        ("attach", {**BYTES, "name": "a/b"}, "name", "path"),
        ("park", {**QUESTION, "kind": "timer"}, "timeout_ms", "a timer ends by it"),
        ("park", {**QUESTION, "fallback": {"kind": "deny", "value": None}}, "fallback", "goes with timeout_ms"),
        (
            "park", {**QUESTION, "kind": "timer", "timeout_ms": 1, "fallback": {"kind": "deny", "value": None}},
            "fallback.kind", "waits for timer",
        ),
        (
            "park", {**QUESTION, "timeout_ms": 1, "fallback": {"kind": "edit", "value": None}},
            "fallback.value", "carries a value",
        ),
        ("park", {**QUESTION, "fallback": {"kind": "timeout", "value": None}}, "fallback.kind", "one of accept"),
        ("decide", {**ENTRY, "kind": "respond"}, "value", "carries a value"),
        ("decide", {**ENTRY, "kind": "timeout"}, "kind", "'timeout' is not one of accept, edit"),
        ("reconcile", {"effect_id": "e", "outcome": "unknown", "by": "ann"}, "outcome", "one of applied"),
        (
            "reconcile", {"effect_id": "e", "outcome": "not_applied", "by": "ann", "receipt": 1}, "receipt",
            "goes with applied",
        ),
        ("set_queue", {"name": "q", "rate": 1}, "rate_ms", "goes with rate"),
        ("set_queue", {"name": "q", "rate": 0, "rate_ms": 1}, "rate_ms", "both as 0"),
        ("set_queue", {"name": "q", "retention_ms": 1}, "retention_ms", "too short"),
        ("keep_step", {**HELD, "slot": "#01", "value": 1}, "slot", "which call"),
        ("keep_step", {**HELD, "slot": "#1\n", "value": 1}, "slot", "which call"),
        ("keep_step", {**HELD, "slot": "1", "value": 1}, "slot", "which call"),
        ("keep_step", {**HELD, "slot": "=", "value": 1}, "slot", "which call"),
        ("keep_step", {**HELD, "slot": "#1", "value": 1, "cost": True}, "cost", "true is not a number"),
        ("task", {"task_id": None}, "task_id", "null is not an id"),
        ("task", {"task_id": "x" * 300}, "task_id", r"\(300 characters\) is not an id of 1 to 200"),
        ("task", {"task_id": {"a": 1}}, "task_id", "an object of 1 fields is not"),
        ("task", {"task_id": "t", "limit": 5}, "limit", "no field that is known here; there are task_id"),
        ("sweep", {"a\nb": 1}, r"a\nb", "there are none"),
        ("task", {}, "task_id", "is missing; give an id of 1 to 200"),
        ("renew", {"handles": [HANDLE, {**HANDLE, "more": 1}]}, "handles[1].more", "task_id, token, secret"),
        ("renew", {"handles": [HANDLE, {"task_id": "t", "token": 5}]}, "handles[1].secret", "is missing"),
        ("renew", {"handles": [HANDLE, "r1.5.s.dA"]}, "handles[1]", "is not an object"),
        ("fail", {"handle": HANDLE, "error": "e", "retry": "yes"}, "retry", "'yes' is not true or false"),
        ("release", {"handle": HANDLE, "why": "bored"}, "why", "'bored' is not one of released"),
        ("steps", {"task_id": "t", "after": ["a"]}, "after", "a list of 1 items is not a list of 2 items"),
        ("tasks", {"which": {"labels": {"a": "b", "c": ""}}}, "which.labels['c']", "is not a name"),
        ("stats", b'{"queue":' + b"9" * 5_000 + b"}", "queue", "a number of 5000 characters is not a name"),
        ("submit", submission(b"1e999"), "tasks[1].input", "does not parse"),
        ("submit", submission(b"9" * 5_000), "tasks[1].input", "does not parse"),
        ("submit", submission(b'{"n":%d}' % (1 << 63)), "tasks[1].input.n", "beyond 64 bits"),
        ("submit", submission(b'{"a\\n\\u2028":%d}' % (1 << 64)), r"tasks[1].input.a\n\u2028", "beyond 64 bits"),
        ("submit", submission(b'{"%s":%d}' % (b"x" * 2_000, 1 << 64)), f"tasks[1].input.{'x' * 982}...", "beyond 64"),
        ("submit", submission(b'"\xff"'), "tasks[1].input", "does not parse"),
        ("submit", submission(b'{"a":["\\u0000"]}'), "tasks[1].input.a[0]", "no store keeps"),
        ("submit", submission(b"[" * 101 + b"]" * 101), f"tasks[1].input{'[0]' * 100}", "nested deeper"),
        ("submit", submission(b'{"x":[{"y":1,"z":0,"y":2}]}'), "tasks[1].input.x[0].y", "said twice"),
        ("submit", submission(b'{"a":[1,[{}]],"b":{"x":1,"x":2}}'), "tasks[1].input.b.x", "said twice"),
        ("submit", submission(b'{"relet:artifact":"x"}'), "tasks[1].input", "stands for a kept file"),
        ("submit", submission(ADDRESS[:-1] + b',"z":1}'), "tasks[1].input", "stands for a kept file"),
        ("submit", submission(b'"%s"' % (b"x" * limits.PAYLOAD_BYTES_MAX)), "tasks[1].input", "the limit is"),
        ("submit", submission(b"[" + b" " * 6 * limits.PAYLOAD_BYTES_MAX + b"]"), "tasks[1].input", "the limit is"),
        ("task", b'{"task_id":"a","task_id":"b"}', "task_id", "said twice"),
        ("task", b'{ "task_id" :\t"a",\r\n"task_id": "b" }', "task_id", "said twice"),
        ("submit", submission(b'{"a b":1,"ab":2,"a b" : 1}'), "tasks[1].input.a b", "said twice"),
        ("task", b'{"task_id":"a","task_id":7}', "task_id", "7 is not an id"),
        ("task", b'{"task_id":7,"task_id":"a"}', "body", "says a field twice"),
        ("task", b"[" * 100_000, "body", "nested too deeply"),
        ("submit", submission(b"[" * 100_000), "body", "nested too deeply"),
        ("task", b"", "body", "is no JSON"),
        ("task", b'{"task_id":"a"', "body", "is no JSON"),
        ("task", b'{"task_id":"a"} x', "body", "is no JSON"),
        ("task", b'{"task_id":7,', "body", "is no JSON"),
        ("task", b'{"task_id":"\xff"}', "body", "in UTF-8"),
        ("task", b'\xef\xbb\xbf{"task_id":"a"}', "body", "is no JSON"),
        ("task", '{"task_id":"a"}'.encode("utf-16"), "body", "is no JSON"),
        ("task", b"[]", "body", "a list of 0 items is not an object"),
        ("task", b"null", "body", "null is not an object"),
    ],
)  # fmt: skip
def test_it_is_refused_by_the_name_of_the_field(name, request_, field, says):
    named, message = refused(name, request_)
    assert named == field
    assert message.startswith(f"{field}: ")
    assert re.search(says, message), message


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b' {"b" : 1,\n"a":[ 1.50, 1E2, -0.0, 1.0 ]} ', {"a": [1.5, 100.0, -0.0, 1.0], "b": 1}),
        (b'"\\u00fc\\ud83d\\ude00\\/"', "\u00fc\U0001f600/"),
        (b"null", None),
        (b"[[],{}]", [[], {}]),
        (b'{"z":{"relet:artifact":"x"}}', {"z": {"relet:artifact": "x"}}),
    ],
)
def test_what_is_written_otherwise_is_the_same_content(sent, kept):
    assert bytes(ask("submit", submission(sent)).tasks[1].input) == encoded("input", kept)


def test_the_address_of_a_kept_file_is_let_through_as_it_is_kept():
    loose = b'{ "size": 300000, "relet:artifact": "%s" }' % (b"a" * 64)
    assert bytes(ask("submit", submission(loose)).tasks[1].input) == ADDRESS


def test_a_receipt_may_be_left_out_and_may_be_null():
    end = {"handle": HANDLE, "effect_id": "e", "attempt": 1, "outcome": "applied"}
    assert ask("end_effect", end).receipt is msgspec.UNSET
    assert bytes(ask("end_effect", {**end, "receipt": None}).receipt) == b"null"


def test_a_body_that_leaves_out_what_has_a_default_is_whole():
    assert ask("claim", b'{ "queues" : [ "q" ] , "holder" : "A" }') == ask("claim", CLAIM)


def test_the_word_of_what_is_said_twice_goes_to_what_counts():
    """The object of the first word is dropped by the second, with what was said twice in it."""
    field, _ = refused("submit", submission(b'{"a":{"x":1,"x":2},"b":[[],{}],"a":{}}'))
    assert field == "tasks[1].input.a"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_request_in_which_every_field_is_given_is_refused_for_its_sense_alone(operation):
    found = outcome(operation, json.dumps(whole(shape(operation.request))).encode())
    if isinstance(found, Invalid):
        assert found.detail["field"] in {
            "queues",
            "next.queues",
            "uri",
            "fallback.kind",
            "at_wall_ms",
            "retention_ms",
        }


def outcome(operation, body):
    """A request, or a refusal that names a field; any other exception ends the test."""
    try:
        found = received(operation, body)
    except Invalid as refusal:
        found = refusal
    assert isinstance(found, operation.request) or found.message.startswith(f"{found.detail['field']}: ")
    return found


OPERATION = st.sampled_from(OPERATIONS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3).map(repr),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(OPERATION, st.binary())
@example(BY_NAME["stats"], b'{"queue\xff":1}')
@example(BY_NAME["stats"], b'{"queue":"\\ud800"}')
def test_whatever_bytes_come_in_the_outcome_is_a_request_or_a_refusal(operation, body):
    outcome(operation, body)


@given(st.sampled_from(BODIES), st.data())
def test_so_it_is_of_bodies_that_were_whole(body, data):
    at, to = sorted(data.draw(st.lists(st.integers(0, len(body)), min_size=2, max_size=2)))
    piece = data.draw(
        st.binary(max_size=4) | st.sampled_from([b'"', b"{", b"]", b",", b"null", b"1e999", body[at:to] * 2])
    )
    for operation in OPERATIONS:
        outcome(operation, body[:at] + piece + body[to:])


@given(OPERATION, JSON, st.data())
def test_so_it_is_of_any_json_in_any_field(operation, value, data):
    made = whole(shape(operation.request))
    inner, name = made, None
    while isinstance(inner, (dict, list)) and inner and (name is None or data.draw(st.booleans())):
        where, name = inner, data.draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
        inner = where[name]
    if name is not None:
        where[name] = value
    found = outcome(operation, json.dumps(made).encode())
    if isinstance(found, operation.request):
        assert encode(received(operation, encode(found))) == encode(found)
