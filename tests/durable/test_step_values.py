"""What a step gives back: always what a later holder would get, of the type that was asked for."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

import msgspec
import pydantic
import pytest

import relet
from relet.client.blocking_lease import Lease
from relet.core import limits
from tests.durable.styles import Calls


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Place(msgspec.Struct):
    name: str
    at: datetime


class Page(TypedDict):
    url: str
    links: list[str]


class Order(pydantic.BaseModel):
    id: int
    total: float


class Colour(enum.Enum):
    RED = "red"


def point() -> Point:
    return Point(1, 2)


def place() -> Place:
    return Place("Ghent", datetime(2027, 1, 1, tzinfo=UTC))


def page() -> Page:
    return {"url": "/", "links": ["/a"]}


def order() -> Order:
    return Order(id=7, total=2.5)


def colour() -> Colour:
    return Colour.RED


def points() -> list[Point]:
    return [Point(1, 2), Point(3, 4)]


def pair() -> tuple[int, str]:
    return 1, "a"


def nothing() -> None:
    return None


def text():
    return ("a", {"b": (1, 2)})


async def point_awaited() -> Point:
    await asyncio.sleep(0)
    return Point(1, 2)


def orders() -> dict[str, list[Order]]:
    return {"open": [Order(id=7, total=2.5)], "done": []}


TYPED = [point, place, page, order, colour, points, pair, nothing, orders]


@pytest.mark.parametrize("make", TYPED, ids=lambda make: make.__name__)
def test_a_result_comes_back_as_its_annotation_says_the_first_time_and_from_the_memo(db, handle, settle, make):
    seen, fail_once = [], Calls(RuntimeError)

    async def body(run):
        seen.append(await run.step("make", make))
        fail_once()

    assert settle(handle(body).submit(db)).state == "done"
    assert seen == [make(), make()]
    assert type(seen[0]) is type(seen[1]) is type(make())


def test_a_coroutine_function_is_annotated_by_what_it_gives(db, app, settle):
    seen = []

    @app.task("work")
    async def work(run):
        seen.append(await run.step("make", point_awaited))

    assert settle(work.submit(db)).state == "done"
    assert seen == [Point(1, 2)]


def test_without_an_annotation_a_result_is_plain_json_the_first_time_too(db, handle, settle):
    seen, fail_once = [], Calls(RuntimeError)

    async def body(run):
        seen.append(await run.step("make", text))
        fail_once()

    assert settle(handle(body).submit(db)).state == "done"
    assert seen == [["a", {"b": [1, 2]}]] * 2


def test_a_result_that_is_changed_after_the_step_changes_nothing_that_was_kept(db, handle, settle):
    mine, fail_once = {"n": 1}, Calls(RuntimeError)

    async def body(run):
        found = await run.step("make", lambda: mine)
        found["n"] += 1
        fail_once()
        return found

    assert settle(handle(body).submit(db)).result == {"n": 2}
    assert mine == {"n": 1}


def test_returns_names_the_type_where_no_annotation_does_and_goes_before_one(db, handle, settle):
    seen = []

    async def body(run):
        seen.append(await run.step("bare", lambda: {"x": 1, "y": 2}, returns=Point))
        seen.append(await run.step("other", point, returns=dict[str, int]))
        seen.append(await run.step("model", lambda: {"id": 7, "total": 2.5}, returns=Order))

    assert settle(handle(body).submit(db)).state == "done"
    assert seen == [Point(1, 2), {"x": 1, "y": 2}, Order(id=7, total=2.5)]


def test_a_result_that_does_not_fit_its_type_is_refused_and_not_kept(db, handle, settle):
    said = []

    async def body(run):
        for kind in (Point, Order, list[Order]):
            with pytest.raises(relet.Invalid) as refused:
                await run.step("make", lambda: {"x": "wide"}, returns=kind)
            said.append(str(refused.value))

    task = handle(body).submit(db)
    assert settle(task).state == "done"
    assert db.steps(task.id) == []
    assert "the result of step 'make' does not fit" in said[0]
    assert "$.x" in said[0]
    assert "total" in said[1]
    assert "valid list" in said[2]


def test_a_type_that_changed_since_the_result_was_kept_says_so(db, handle, settle):
    said = []

    async def body(run):
        if run.attempt == 1:
            await run.step("make", lambda: {"x": "wide"})
            raise RuntimeError
        with pytest.raises(relet.Invalid) as refused:
            await run.step("make", Calls(), returns=Point)
        said.append(str(refused.value))

    assert settle(handle(body).submit(db)).state == "done"
    assert "what step 'make' kept does not fit" in said[0]


BAD = {
    "a set": ({"tags": {"b"}}, "result of step 'make'.tags", "sorted list"),
    "bytes": ([b"raw"], "result of step 'make'[0]", "address of a file"),
    "NaN": ({"rows": [{"loss": float("nan")}]}, "result of step 'make'.rows[0].loss", "no JSON form"),
    "an object": ({"client": object()}, "result of step 'make'.client", "no JSON form"),
    "a key": ({"by": {7: "a"}}, "result of step 'make'.by", "keys are text"),
    "a lone surrogate": ("\ud800", "result of step 'make'", "no store keeps"),
}


@pytest.mark.parametrize("bad", list(BAD))
def test_a_result_that_is_not_json_is_refused_by_its_path_and_the_lease_is_still_good(db, handle, settle, bad):
    value, path, way_out = BAD[bad]
    said = []

    async def body(run):
        with pytest.raises(relet.Invalid) as refused:
            await run.step("make", lambda: value)
        said.append(refused.value)
        await run.check()
        return await run.step("make", lambda: "mended")

    task = handle(body).submit(db)
    assert settle(task).result == "mended"
    assert said[0].detail["field"] == path
    assert str(said[0]).startswith(f"{path}: ")
    assert way_out in str(said[0])
    assert len(db.steps(task.id)) == 1


def test_a_handler_that_lets_it_pass_is_tried_again_and_then_fails_with_the_path(db, handle, settle):
    """Another try may give another value: a NaN of today is a number tomorrow."""
    make = Calls(float("nan"), float("nan"), 1.5)

    async def body(run):
        return await run.step("make", make)

    assert settle(handle(body).submit(db)).result == 1.5
    make[:] = []
    make._answers = [float("nan")] * 5
    failed = settle(handle(body, "again").submit(db))
    assert (failed.state, len(make)) == ("failed", limits.MAX_ATTEMPTS)
    assert failed.error == "Invalid: result of step 'make': nan has no JSON form; pass None or text"


def test_a_result_over_the_limit_points_to_attach(db, handle, settle):
    said = []

    async def body(run):
        with pytest.raises(relet.Invalid) as refused:
            await run.step("make", lambda: "x" * limits.PAYLOAD_BYTES_MAX)
        said.append(str(refused.value))

    assert settle(handle(body).submit(db)).state == "done"
    assert "result of step 'make': has 1048578 bytes as JSON, the limit is 1048576" in said[0]
    assert "run.attach" in said[0]


@pytest.mark.parametrize("size", [limits.MEMO_BYTES_MAX * 2, limits.FILE_BYTES_MIN, limits.PAYLOAD_BYTES_MAX - 2])
def test_large_results_come_back_whole_wherever_they_are_kept(db, handle, settle, size):
    make, fail_once, seen = Calls("x" * size), Calls(RuntimeError), []

    async def body(run):
        found = await run.step("make", make)
        seen.append(found == "x" * size)
        fail_once()

    task = handle(body).submit(db)
    assert settle(task).state == "done"
    assert (len(make), seen) == (1, [True, True])
    (step,) = db.steps(task.id)
    assert step.value == "x" * size


def files_of(db):
    return [one for one in Path(db.files.place.folder, "sha256").rglob("*") if one.is_file()]


def test_a_result_of_256_kib_is_a_file_and_its_row_holds_the_address(db, handle, settle):
    async def body(run):
        await run.step("small", lambda: "x" * (limits.FILE_BYTES_MIN - 3))
        await run.step("large", lambda: "x" * (limits.FILE_BYTES_MIN - 2))

    task = handle(body).submit(db)
    settle(task)
    assert [one.stat().st_size for one in files_of(db)] == [limits.FILE_BYTES_MIN]


def test_a_damaged_file_of_a_result_is_an_error_that_names_it_and_not_another_value(db, handle, settle):
    fail_once = Calls(RuntimeError)
    make = Calls("x" * limits.FILE_BYTES_MIN)

    async def body(run):
        await run.step("make", make)
        if run.attempt == 1:
            (file,) = files_of(db)
            file.chmod(0o600)
            file.write_bytes(b"y" * file.stat().st_size)
        fail_once()

    failed = settle(handle(body).submit(db))
    assert (failed.state, len(make)) == ("failed", 1)
    assert "artifact" in failed.error


def test_a_result_that_looks_like_the_address_of_a_file_is_refused(db, handle, settle):
    said = []

    async def body(run):
        with pytest.raises(relet.Invalid) as refused:
            await run.step("make", lambda: {"relet:artifact": "a" * 64, "size": 1})
        said.append(str(refused.value))

    assert settle(handle(body).submit(db)).state == "done"
    assert "name it otherwise" in said[0]


def test_what_another_thread_kept_first_is_read_from_its_file_outside_of_the_loop(db, app, settle, monkeypatch):
    real, readers, loops = Lease.fetched, [], []

    def fetched(self, encoded):
        readers.append(threading.get_ident())
        return real(self, encoded)

    @app.task("work")
    async def work(run):
        def look():
            relet.Run(run.lease).step("look", lambda: "first" * 100_000)
            monkeypatch.setattr(Lease, "fetched", fetched)
            return "second" * 100_000

        loops.append(threading.get_ident())
        return (await run.step("look", look))[:5]

    assert settle(work.submit(db)).result == "first"
    assert len(readers) == 1
    assert readers != loops
