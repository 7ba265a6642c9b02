"""Payloads that JSON or a store cannot keep: refused by their path, wherever a value is handed in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import pytest

from relet.client.blocking_lease import Lease
from relet.core import limits
from relet.core.errors import Invalid
from relet.testing.conformance.evidence import refused
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, held

VERBS: Final[dict[str, tuple[str, Callable[[Any, Any, Any], object]]]] = {
    "submit": ("input", lambda db, _, value: db.submit(QUEUE, value)),
    "save": ("value", lambda _, lease, value: lease.save(value)),
    "complete": ("result", lambda _, lease, value: lease.complete(value)),
}

CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


def deep(levels: int) -> Any:
    """A list in a list in a list."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


UNFIT: Final[dict[str, tuple[Any, str, str]]] = {
    "NaN": (float("nan"), "", "no JSON form"),
    "NaN nested": ({"a": [1, {"b": float("nan")}]}, ".a[1].b", "no JSON form"),
    "infinity nested": ([[float("inf")]], "[0][0]", "no JSON form"),
    "minus infinity": ({"x": -float("inf")}, ".x", "no JSON form"),
    "NUL": ("a\x00b", "", "remove"),
    "NUL nested": ({"a": ["\x00"]}, ".a[0]", "remove"),
    "lone surrogate": ({"a": "\ud800"}, ".a", "remove"),
    "NUL in a key": ({"a": {"\x00": 1}}, ".a", "remove"),
    "lone surrogate in a key": ({"\udfff": 1}, "", "remove"),
    "key that is a number": ({"a": {7: 1}}, ".a", "keys are text"),
    "key that is None": ({None: 1}, "", "keys are text"),
    "bytes": ({"a": b"raw"}, ".a", "address of a file"),
    "set": ({"a": {1, 2}}, ".a", "sorted list"),
    "whole number beyond 64 bits": ({"a": 2**63}, ".a", "as text"),
    "whole number below 64 bits": ([-(2**63) - 1], "[0]", "as text"),
    "whole number too long to print": ([10**5_000], "[0]", "as text"),
    "too deep": (deep(101), "[0]" * 100, "100 levels"),
    "a list in itself": (CIRCLE, "[0]" * 100, "100 levels"),
    "an object": ({"a": object()}, ".a", "no JSON form"),
    "a function": ([len], "[0]", "no JSON form"),
    "a megabyte": ("x" * (limits.PAYLOAD_BYTES_MAX - 1), "", "1048576"),
    "a megabyte in few characters": ("漢" * (limits.PAYLOAD_BYTES_MAX // 3), "", "1048576"),
}  # fmt: skip


@pytest.mark.case("PL-01", "PL-02")
@pytest.mark.parametrize("case", UNFIT)
@pytest.mark.parametrize("verb", VERBS)
def test_a_value_that_cannot_be_kept_is_refused_by_its_path(route: Route, verb: str, case: str) -> None:
    field, call = VERBS[verb]
    value, path, told = UNFIT[case]
    lease = held(route)
    with refused(route, Invalid) as caught:
        call(route.db, lease, value)
    assert caught.value.detail["field"] == f"{field}{path}"
    assert str(caught.value).startswith(f"{field}{path}: ")
    assert told in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert lease.renew() == 60


@pytest.mark.parametrize("verb", VERBS)
def test_a_value_of_exactly_the_limit_is_kept(route: Route, verb: str) -> None:
    value = "x" * (limits.PAYLOAD_BYTES_MAX - 2)  # two bytes are the quotes
    lease = held(route)
    VERBS[verb][1](route.db, lease, value)
    assert kept(route, lease, verb) == value


def kept(route: Route, lease: Lease, verb: str) -> Any:
    """What the verb handed in, as it is read back."""
    match verb:
        case "submit":
            return route.db.tasks(limit=2)[-1].input
        case "save":
            return lease.load()
        case _:
            return route.db.result("t")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("bytes_more", [-1, 0], ids=["in its row", "in a file"])
def test_a_large_value_is_kept_beside_the_store_and_read_back_the_same(
    route: Route, verb: str, bytes_more: int
) -> None:
    value = "x" * (limits.FILE_BYTES_MIN - 2 + bytes_more)
    lease = held(route)
    VERBS[verb][1](route.db, lease, value)
    assert kept(route, lease, verb) == value
    table, column = {
        "submit": ("inputs", "input"),
        "save": ("checkpoints", "value"),
        "complete": ("tasks", "result"),
    }[verb]
    largest = max(len(row[column] or "") for row in route.rows()[table])
    assert largest == limits.FILE_BYTES_MIN - 1 if bytes_more else largest < 200


SAID: Final[dict[str, Callable[[Any, Any, str], object]]] = {
    "error": lambda _, lease, text: lease.fail(text, retry=False),
    "code of an error": lambda _, lease, text: lease.fail("no", code=text, retry=False),
    "result": lambda _, lease, text: lease.complete([text]),
    "checkpoint": lambda _, lease, text: lease.save({text: text}),
    "name of a checkpoint": lambda _, lease, text: lease.save(1, name=text),
    "name of an artifact": lambda _, lease, text: lease.attach(text, b"x"),
    "question": lambda _, lease, text: lease.park(text, ask=text),
    "label": lambda db, _, text: db.submit("elsewhere", 1, labels={text: text}),
    "holder": lambda db, _, text: db.claim("elsewhere", holder=text),
    "reason of a cancel": lambda db, _, text: db.cancel("t", text),
    "signal": lambda db, _, text: db.signal("t", "go", text),
}
"""Wherever text is handed in."""
KEPT: Final = "a\uffff"
"""No character, and yet text that every database keeps."""
UNKEPT: Final = re.compile(r"[\x00\ud800-\udfff]|\\u0000|\\ud[89a-f]", re.IGNORECASE)
"""As it is, or escaped within JSON, which other engines unescape."""


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800", KEPT], ids=["NUL", "lone surrogate", "no character"])
@pytest.mark.parametrize("where", SAID)
def test_pl_01_text_that_a_store_cannot_keep_is_cleaned_or_refused_by_its_field_and_no_task_hangs(
    route: Route, where: str, text: str
) -> None:
    lease, problem = held(route), None
    try:
        SAID[where](route.db, lease, text)
    except Invalid as wrong:
        problem = wrong
    assert problem is None or (problem.detail["field"] and text != KEPT), problem
    task = route.db.task("t")
    if task.cancel_requested:
        lease.release()
    elif task.live:
        lease.complete("mended")
    task = route.db.task("t")
    assert not task.live
    assert task.state in {"done", "failed", "cancelled", "waiting"}
    values = [value for rows in route.rows().values() for row in rows for value in row.values()]
    assert values
    assert [value for value in values if UNKEPT.search(str(value))] == []


def test_one_input_among_many_is_named_by_its_place(route: Route) -> None:
    with refused(route, Invalid, field="inputs[2].a"):
        route.db.submit_many(QUEUE, [1, 2, {"a": float("nan")}])


@pytest.mark.case("PL-02")
def test_a_refused_result_leaves_the_lease_to_hand_in_another(route: Route) -> None:
    lease = held(route)
    with refused(route, Invalid, field="result"):
        lease.complete(float("nan"))
    lease.complete("mended")
    assert route.db.result("t") == "mended"


class Colour(StrEnum):
    RED = "red"


@dataclass
class Page:
    number: int
    tags: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ((1, 2), [1, 2]),
        (Colour.RED, "red"),
        (Page(3, ("a",)), {"number": 3, "tags": ["a"]}),
        ({"when": datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)}, {"when": "2030-01-02T03:04:05Z"}),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (deep(100), deep(100)),
        ({"a\nb": "tab\tbell\x07"}, {"a\nb": "tab\tbell\x07"}),
    ],
    ids=["tuple", "enum", "dataclass", "datetime", "uuid", "deep", "control characters"],
)
def test_what_has_a_json_form_is_kept_in_it(route: Route, value: Any, kept: Any) -> None:
    lease = held(route)
    lease.save(value)
    assert lease.load() == kept
    lease.complete(value)
    assert route.db.result("t") == kept
