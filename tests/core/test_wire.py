"""Requests, answers and errors cross a wire unchanged; what is unknown or malformed does not pass."""

import json

import msgspec
import pytest

from relet.core import wire
from relet.core.catalog import BY_NAME, OPERATIONS
from relet.core.errors import FAMILIES, Conflict, Error, LeaseLost, NotFound, Unavailable
from relet.core.received import received
from relet.core.whoami import API, Whoami
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
    again = received(said.operation, body)
    assert facts(again) == facts(said.request)
    assert wire.encode(again) == body


@pytest.mark.parametrize("said", SAID, ids=IDS)
def test_an_answer_comes_through_unchanged(said):
    body = wire.encode(said.answer)
    again = wire.decode_answer(said.operation, body)
    assert facts(again) == facts(said.answer)
    assert wire.encode(again) == body


def test_who_is_asked_by_whom_is_told_first():
    who = Whoami(
        tenant="t", name="n", role="worker", scopes=["read"], queues=None, store_id="s", version="0", api=API
    )  # fmt: skip
    assert msgspec.json.decode(wire.encode(who), type=Whoami) == who


def test_a_saved_value_in_the_shape_of_an_error_is_a_value():
    shape = wire.encode(wire.failure(Conflict("no")))
    again = wire.decode_answer(BY_NAME["load"], wire.encode(msgspec.Raw(shape)))
    assert bytes(again) == shape


def test_refusals_inside_answers_are_among_what_was_said():
    text = b"".join(wire.encode(said.answer) for said in SAID if said.operation.name in {"renew", "complete"})
    assert b'"family":"NotFound"' in text
    assert b'"family":"LeaseLost"' in text


def test_an_error_of_the_whole_second_half_is_a_value_too():
    said = next(said for said in SAID if said.operation.name == "complete" and isinstance(said.answer.grants, Error))
    again = wire.decode_answer(said.operation, wire.encode(said.answer))
    assert isinstance(again.grants, LeaseLost)


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
    assert json.loads(bytes(wire.decode_answer(BY_NAME["load"], wire.encode(RAW)))) == VALUE
    for value in (b'{"error":"x"}', b'{"error":{"code":"x"}}', b"[1]", b"null", b'"error"'):
        assert bytes(wire.decode_answer(BY_NAME["load"], wire.encode(msgspec.Raw(value)))) == value


def test_what_has_no_form_on_the_wire_is_a_bug():
    with pytest.raises(TypeError, match="object has no JSON form"):
        wire.encode({"x": object()})
