"""JSON values in and out: canonical text, and a path to whatever has no form."""

import dataclasses
import enum
import uuid
from collections import OrderedDict, UserDict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import NamedTuple

import msgspec
import pytest

from relet.core import limits, payload
from relet.core.errors import Invalid, Unavailable


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


class Weight(float, enum.Enum):
    HEAVY = 2.5


class Plain(enum.Enum):
    NAME = "name"
    NOTHING = None


@dataclasses.dataclass
class Point:
    x: int
    y: object = None


class Box(msgspec.Struct):
    at: Point
    tags: list[str] = []


class Pair(NamedTuple):
    left: int
    right: int


class Model:
    """Shaped like a pydantic model."""

    def __init__(self, **fields):
        self.fields = fields

    def model_dump(self, *, mode):
        assert mode == "json"
        return self.fields


class Endless:
    def model_dump(self, *, mode):
        return self


class Text(str):
    __slots__ = ()


ID = uuid.UUID("0198c0de-0000-7000-8000-000000000001")
FORMS = [
    (None, "null"),
    (True, "true"),
    ("é ✓ \u2028", '"é ✓ \u2028"'),
    (0, "0"),
    ((1 << 63) - 1, "9223372036854775807"),
    (-(1 << 63), "-9223372036854775808"),
    (1.5, "1.5"),
    (1.0, "1.0"),
    ([], "[]"),
    ((1, [2]), "[1,[2]]"),
    ({"b": 1, "a": {"d": 2, "c": 3}}, '{"a":{"c":3,"d":2},"b":1}'),
    (OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
    (UserDict(a=1), '{"a":1}'),
    (Pair(1, 2), "[1,2]"),
    (Text("sub"), '"sub"'),
    (Colour.RED, '"red"'),
    ({Colour.RED: Colour.RED}, '{"red":"red"}'),
    (Size.LARGE, "3"),
    (Weight.HEAVY, "2.5"),
    (Plain.NAME, '"name"'),
    (Point(1, Point(2)), '{"x":1,"y":{"x":2,"y":null}}'),
    (Box(Point(1), ["a"]), '{"at":{"x":1,"y":null},"tags":["a"]}'),
    (Model(n=Point(1), size=Size.LARGE), '{"n":{"x":1,"y":null},"size":3}'),
    (datetime(2027, 1, 15, 8, tzinfo=UTC), '"2027-01-15T08:00:00Z"'),
    (date(2027, 1, 15), '"2027-01-15"'),
    (timedelta(seconds=90), '"PT90S"'),
    (ID, f'"{ID}"'),
    (Decimal("1.10"), '"1.10"'),
    (msgspec.Raw(b' {"b": 1, "a": 2} '), '{"a":2,"b":1}'),
]
CYCLE: list = []
CYCLE.append(CYCLE)
REFUSED = [
    (float("nan"), "v: nan has no JSON form; pass None or text"),
    ({"a": [float("inf")]}, r"v\.a\[0\]: inf has no JSON form"),
    (1 << 63, "v: 9223372036854775808 is beyond 64 bits; pass it as text"),
    ([-(1 << 63) - 1], r"v\[0\]: -9223372036854775809 is beyond 64 bits"),
    (10**5_000, "v: a int that cannot be shown is beyond 64 bits"),
    ({"k": "a\x00"}, r"v\.k: holds the character '\\x00'"),
    ("\ud800", r"v: holds the character '\\ud800'"),
    ({1: 2}, "v: has the key 1, which is not text"),
    ({None: 2}, "v: has the key None, which is not text"),
    ({"in": {"a\x00": 1}}, r"v\.in: has a key with the character '\\x00'"),
    ({"deep": [{"x": b"bytes"}]}, r"v\.deep\[0\]\.x: is bytes"),
    (bytearray(b"x"), "v: is bytes"),
    (memoryview(b"x"), "v: is bytes"),
    ({1, 2}, "v: is a set, whose order is not fixed; pass a sorted list"),
    (Point(1, frozenset()), r"v\.y: is a set"),
    (Model, "v: is a class; pass an instance"),
    ([Point], r"v\[0\]: is a class"),
    (Endless(), "v: is nested deeper than 100 levels"),
    (CYCLE, r"v\[0\].*: is nested deeper than 100 levels; flatten it"),
    (msgspec.Raw(b'{"a":'), "v: is raw JSON that does not parse"),
    (msgspec.Raw(b"[1e999]"), "v: is raw JSON that does not parse"),
    (object(), "v: <object object at .* of type object has no JSON form"),
    (Plain.NOTHING, "v: <Plain.NOTHING: None> of type Plain has no JSON form"),
    (iter([1]), "v: .* of type list_iterator has no JSON form"),
    (1j, "v: 1j of type complex has no JSON form"),
    ({"f": len}, r"v\.f: <built-in function len> of type builtin_function_or_method has no JSON form"),
]


@pytest.mark.parametrize(("value", "text"), FORMS, ids=count())
def test_a_value_has_one_canonical_text(value, text):
    assert payload.encode("v", value) == text
    assert payload.encode("v", payload.decode(text)) == text


@pytest.mark.parametrize(("value", "problem"), REFUSED, ids=count())
def test_what_has_no_json_form_is_refused_with_its_path(value, problem):
    with pytest.raises(Invalid, match=f"^{problem}"):
        payload.encode("v", value)


def test_equal_content_is_equal_text_whatever_it_was_made_of():
    assert payload.encode("v", {"x": 1, "y": None}) == payload.encode("v", Point(1))
    assert payload.encode("v", (1, 2)) == payload.encode("v", [1, 2])


def nested(levels):
    value: list = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_hundred_levels_fit_and_one_more_does_not():
    assert payload.encode("v", nested(limits.PAYLOAD_DEPTH_MAX)).count("[") == 100
    with pytest.raises(Invalid, match="deeper than 100 levels"):
        payload.encode("v", nested(limits.PAYLOAD_DEPTH_MAX + 1))


@pytest.mark.parametrize("letter", ["a", "é"])
def test_a_payload_may_have_a_mebibyte_and_not_one_byte_more(letter):
    most = limits.PAYLOAD_BYTES_MAX
    room = (most - 2) // len(letter.encode()) * letter
    assert len(payload.encode("v", room).encode()) <= most
    with pytest.raises(Invalid, match=f"^v: has {most + 1} bytes as JSON, the limit is {most}"):
        payload.encode("v", room + "x" * (most - 1 - len(room.encode())))


def test_a_digest_knows_where_each_part_ends():
    digests = [payload.digest(*parts) for parts in [("ab",), ("a", "b"), ("", "ab"), (None, "ab"), ("-", "ab"), ()]]
    assert len(set(digests)) == len(digests)
    assert payload.digest("a", None) == payload.digest("a", None)
    assert all(len(text) <= 32 for text in digests)


@pytest.mark.parametrize("text", ["", '{"a":', '"\\ud800"', b"\x80\x04\x95", "[" * 100_000])
def test_what_was_stored_and_is_no_json_any_more_is_damage(text):
    with pytest.raises(Unavailable, match="relet verify") as caught:
        payload.decode(text)
    assert caught.value.code == "RELET-DAMAGED"


@pytest.mark.parametrize("value", [None, 7, ["x"]])
def test_what_is_no_text_at_all_was_never_stored_and_is_the_fault_of_who_asked(value):
    with pytest.raises(TypeError):
        payload.decode(value)
