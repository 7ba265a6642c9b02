"""Requests, answers and errors cross a wire unchanged; what is unknown or malformed does not pass."""

import json

import msgspec
import pytest

from relet.core import wire
from relet.core.catalog import BY_NAME, OPERATIONS
from relet.core.errors import FAMILIES, Conflict, Error, Invalid, LeaseLost, NotFound, Unavailable
from relet.core.model import LostReason
from tests.core.talk import RAW, VALUE, talk

SAID = talk()
IDS = [f"{number}-{said.operation.name}" for number, said in enumerate(SAID)]


def facts(value):
    """A value in which errors and raw JSON can be compared."""
    if isinstance(value, Error):
        return type(value), value.message, value.code, value.detail
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    if isinstance(value, msgspec.Struct):
        return type(value), {name: facts(getattr(value, name)) for name in value.__struct_fields__}
    return [facts(item) for item in value] if isinstance(value, list) else value


def test_every_operation_is_spoken():
    assert {said.operation.name for said in SAID} == {operation.name for operation in OPERATIONS}


@pytest.mark.parametrize("said", SAID, ids=IDS)
def test_a_request_comes_through_unchanged(said):
    body = wire.encode(said.request)
    again = wire.decode_request(said.operation, body)
    assert facts(again) == facts(said.request)
    assert wire.encode(again) == body


@pytest.mark.parametrize("said", SAID, ids=IDS)
def test_an_answer_comes_through_unchanged(said):
    body = wire.encode_answer(said.answer)
    again = wire.decode_answer(said.operation, body)
    assert facts(again) == facts(said.answer)
    assert wire.encode_answer(again) == body


def test_a_saved_value_in_the_shape_of_an_error_is_a_value():
    shape = wire.encode(wire.failure(Conflict("no")))
    again = wire.decode_answer(BY_NAME["load"], wire.encode_answer(msgspec.Raw(shape)))
    assert bytes(again) == shape


def test_refusals_inside_answers_are_among_what_was_said():
    text = b"".join(wire.encode(said.answer) for said in SAID if said.operation.name in {"renew", "complete"})
    assert b'"family":"NotFound"' in text
    assert b'"family":"LeaseLost"' in text


def test_an_error_of_the_whole_second_half_is_a_value_too():
    said = next(said for said in SAID if said.operation.name == "complete" and isinstance(said.answer.grants, Error))
    again = wire.decode_answer(said.operation, wire.encode_answer(said.answer))
    assert isinstance(again.grants, LeaseLost)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_error_at_the_top_is_raised(operation):
    error = LeaseLost("gone", reason="superseded", token=4, current_token=9, task_id="t", late_ms=None)
    with pytest.raises(LeaseLost, match=r"^gone$") as raised:
        wire.decode_answer(operation, wire.encode(error))
    assert facts(raised.value) == facts(error)
    assert raised.value.reason is LostReason.SUPERSEDED


@pytest.mark.parametrize("kind", FAMILIES)
def test_each_family_comes_back_as_itself(kind):
    more = {"reason": "expired"} if issubclass(kind, LeaseLost) else {"field": "id"}
    error = wire.decode_error(wire.encode(kind("said", code="RELET-ODD", **more)))
    assert type(error) is kind
    assert (error.message, error.code, error.retryable) == ("said", "RELET-ODD", kind is Unavailable)


def test_an_error_of_no_listed_class_goes_out_as_its_family():
    class Local(NotFound):
        code = "RELET-LOCAL"

    error = wire.decode_error(wire.encode(Local("said")))
    assert type(error) is NotFound
    assert error.code == "RELET-LOCAL"


def test_a_family_that_only_a_newer_relet_knows_is_an_error_all_the_same():
    body = wire.encode(NotFound("said")).replace(b"NotFound", b"NotYetFound")
    error = wire.decode_error(body)
    assert type(error) is Error
    assert error.code == "RELET-NOT-FOUND"


def test_a_saved_value_that_looks_like_an_error_is_a_value():
    assert json.loads(bytes(wire.decode_answer(BY_NAME["load"], wire.encode_answer(RAW)))) == VALUE
    for value in (b'{"error":"x"}', b'{"error":{"code":"x"}}', b"[1]", b"null", b'"error"'):
        assert bytes(wire.decode_answer(BY_NAME["load"], wire.encode_answer(msgspec.Raw(value)))) == value


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("claim", b'{"holder":"A","queus":["q"]}', "unknown field `queus`"),
        ("claim", b'{"queues":["q"]}', "missing required field `holder`"),
        ("claim", b'{"holder":7}', r"Expected `str`, got `int` - at `\$.holder`"),
        ("claim", b'{"holder":"A","handlers":{"k":{"tll_ms":1}}}', "unknown field `tll_ms`"),
        ("submit", b'{"queue":"q","kind":"k","tasks":[{"id":"t","input":1,"x":1}]}', "unknown field `x`"),
        ("tasks", b'{"which":{"colour":"red"}}', "unknown field `colour`"),
        ("tasks", b'{"which":{"state":"asleep"}}', "Invalid enum value 'asleep'"),
        ("release", b'{"handle":{"task_id":"t","token":"1","secret":"s"}}', "Expected `int`, got `str`"),
        ("task", b'{"task_id":"t"', "truncated"),
        ("task", b'{"task_id":"\xff"}', "UTF-8"),
        ("task", b"", "truncated"),
        ("task", b"[]", "Expected `object`"),
    ],
)
def test_a_request_that_does_not_fit_is_refused_by_name(name, body, problem):
    with pytest.raises(Invalid, match=f"^{name}: .*{problem}") as refused:
        wire.decode_request(BY_NAME[name], body)
    assert refused.value.detail == {"field": name}


def test_what_has_no_form_on_the_wire_is_a_bug():
    with pytest.raises(TypeError, match="object has no JSON form"):
        wire.encode({"x": object()})
