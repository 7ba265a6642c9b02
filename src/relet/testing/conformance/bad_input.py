"""What does not fit is refused by name, with the limit and the way out, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from relet.core import limits
from relet.core.errors import Invalid, NotFound
from relet.testing.conformance.evidence import refused
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import QUEUE, held, ready

Call = Callable[[Any, Any], object]
"""A call that must be refused, given an untyped client and an untyped lease."""

NAIVE: Final = datetime(2030, 1, 2, 3, 4, 5)  # noqa: DTZ001 - the very thing that is refused
LONG: Final = "x" * 201
LONE: Final = "a\ud800"
NUL: Final = "a\x00b"
QUEUES: Final = limits.QUEUES_PER_CLAIM_MAX

SUBMITS: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("kind", {"kind": 7}, "not text"),
    ("kind", {"kind": ""}, "1 to 200"),
    ("id", {"id": 7}, "not text"),
    ("id", {"id": ""}, "1 to 200"),
    ("id", {"id": LONG}, "1 to 200"),
    ("id", {"id": NUL}, "leave it out"),
    ("id", {"id": LONE}, "leave it out"),
    ("id", {"id": "a\nb"}, "leave it out"),
    ("priority", {"priority": "high"}, "not a whole number"),
    ("priority", {"priority": 1.5}, "not a whole number"),
    ("priority", {"priority": True}, "not a whole number"),
    ("priority", {"priority": 1_000_001}, "-1000000 to 1000000"),
    ("delay", {"delay": -1}, "outside 0ms"),
    ("delay", {"delay": "soon"}, '"90s"'),
    ("delay", {"delay": float("nan")}, "not a finite number"),
    ("delay", {"delay": float("inf")}, "not a finite number"),
    ("delay", {"delay": True}, "not a duration"),
    ("delay", {"delay": [60]}, "not a duration"),
    ("delay", {"delay": timedelta(days=4_000)}, "3650d"),
    ("delay", {"delay": 10**400}, "3650d"),
    ("at", {"at": NAIVE}, "naive"),
    ("at", {"at": "2030-01-02"}, "not a datetime"),
    ("at", {"at": datetime.max.replace(tzinfo=UTC)}, "9999"),
    ("at", {"at": datetime(2030, 1, 2, tzinfo=UTC), "delay": 5}, "give one"),
    ("deadline", {"deadline": NAIVE}, "add a zone"),
    ("deadline", {"deadline": 60}, "not a datetime"),
    ("deadline", {"deadline": datetime.min.replace(tzinfo=UTC)}, "1970"),
    ("ttl", {"ttl": 0}, "100ms to 1d"),
    ("ttl", {"ttl": 0.099}, "100ms to 1d"),
    ("ttl", {"ttl": timedelta(days=365)}, "100ms to 1d"),
    ("ttl", {"ttl": "1d1ms"}, "100ms to 1d"),
    ("timeout", {"timeout": 0}, "outside 1ms"),
    ("max_hold", {"max_hold": 0}, "outside 100ms"),
    ("max_attempts", {"max_attempts": 0}, "1 to 10000"),
    ("max_attempts", {"max_attempts": 10_001}, "1 to 10000"),
    ("max_attempts", {"max_attempts": "3"}, "not a whole number"),
    ("max_losses", {"max_losses": -1}, "1 to 10000"),
    ("exclusive", {"exclusive": True}, "give a key"),
    ("exclusive", {"exclusive": LONG}, "1 to 200"),
    ("share", {"share": True}, "give a key"),
    ("share", {"share": 7}, "not text"),
    ("share", {"share": ""}, "1 to 200"),
    ("share", {"share": LONG}, "1 to 200"),
    ("share", {"share": "\x01"}, "leave it out"),
    ("labels", {"labels": ["team"]}, "not a mapping"),
    ("labels", {"labels": {f"k{n}": "v" for n in range(33)}}, "at most 32"),
    ("labels", {"labels": {7: "v"}}, "not text"),
    ("labels['team']", {"labels": {"team": 7}}, "not text"),
    ("labels['team']", {"labels": {"team": NUL}}, "leave it out"),
]


@pytest.mark.parametrize(("field", "options", "told"), SUBMITS, ids=lambda value: str(value)[:40])
def test_a_submit_with_an_option_that_does_not_fit_is_refused(
    route: Route, field: str, options: dict[str, Any], told: str
) -> None:
    ready(route)
    db: Any = route.db
    with refused(route, Invalid, field=field) as one:
        db.submit(QUEUE, 1, **options)
    with refused(route, Invalid, field=field) as many:
        db.submit_many(QUEUE, [1], **as_many(options))
    assert str(one.value) == str(many.value)
    assert str(one.value).startswith(f"{field}: ")
    assert told in str(one.value)


def as_many(options: dict[str, Any]) -> dict[str, Any]:
    """The same options for a submit of several."""
    return {("ids" if key == "id" else key): ([value] if key == "id" else value) for key, value in options.items()}


CALLS: Final[dict[str, tuple[str, str, Call]]] = {
    "queue of a submit": ("queue", "not text", lambda db, _: db.submit(None)),
    "queue with a control character": ("queue", "leave it out", lambda db, _: db.submit("a\tb")),
    "inputs that are no list": ("inputs", "one input for each", lambda db, _: db.submit_many(QUEUE, {"a": 1})),
    "inputs that are text": ("inputs", "one input for each", lambda db, _: db.submit_many(QUEUE, "ab")),
    "too many inputs": ("inputs", "at most 10000", lambda db, _: db.submit_many(QUEUE, range(10_001))),
    "ids of another length": ("ids", "one each", lambda db, _: db.submit_many(QUEUE, [1, 2], ids=["a"])),
    "ids that are text": ("ids", "list", lambda db, _: db.submit_many(QUEUE, [1, 2], ids="ab")),
    "ids that are a number": ("ids", "list", lambda db, _: db.submit_many(QUEUE, [1, 2], ids=7)),
    "neither queue nor task": ("queue", "give one", lambda db, _: db.claim()),
    "both queue and task": ("queue", "give one", lambda db, _: db.claim(QUEUE, task_id="t")),
    "no queues": ("queue", f"1 to {QUEUES}", lambda db, _: db.claim([])),
    "too many queues": ("queue", f"1 to {QUEUES}", lambda db, _: db.claim(list(map(str, range(QUEUES + 1))))),
    "a number among queues": ("queue", "not text", lambda db, _: db.claim([QUEUE, 7])),
    "no kinds": ("kinds", "1 to 1000", lambda db, _: db.claim(QUEUE, kinds=[])),
    "kinds of a single task": ("kinds", "task_id", lambda db, _: db.claim(task_id="t", kinds=["k"])),
    "n of nothing": ("n", "1 to 1000", lambda db, _: db.claim_many(QUEUE, 0)),
    "n beyond the limit": ("n", "1 to 1000", lambda db, _: db.claim_many(QUEUE, 1_001)),
    "n that is a bool": ("n", "not a whole number", lambda db, _: db.claim_many(QUEUE, True)),
    "holder that is empty": ("holder", "1 to 200", lambda db, _: db.claim(QUEUE, holder="")),
    "holder that is a number": ("holder", "not text", lambda db, _: db.claim(QUEUE, holder=7)),
    "ttl of nothing": ("ttl", "100ms to 1d", lambda db, _: db.claim(QUEUE, ttl=0)),
    "ttl of a year": ("ttl", "100ms to 1d", lambda db, _: db.claim(QUEUE, ttl="365d")),
    "ttl of a renewal": ("ttl", "100ms to 1d", lambda _, lease: lease.renew(ttl=0)),
    "wait below nothing": ("wait", "outside 0ms", lambda db, _: db.claim(QUEUE, wait=-1)),
    "wait of a week": ("wait", "0ms to 1d", lambda db, _: db.claim(QUEUE, wait="7d")),
    "wait for a result of a week": ("wait", "0ms to 1d", lambda db, _: db.result("t", wait="7d")),
    "request id that is empty": ("request_id", "1 to 200", lambda db, _: db.claim(QUEUE, request_id="")),
    "handle without its task": ("handle", "task_id", lambda db, lease: db.claim(QUEUE, handle=lease.handle)),
    "name of a checkpoint": ("name", "1 to 200", lambda _, lease: lease.save(1, name="")),
    "name of a checkpoint to load": ("name", "not text", lambda _, lease: lease.load(7)),
    "claim_next that is no flag": (
        "claim_next",
        "True or False",
        lambda _, lease: lease.complete(1, claim_next="yes"),
    ),
    "retry that is no flag": ("retry", "True or False", lambda _, lease: lease.fail("no", retry="yes")),
    "delay of a failure": ("delay", "outside 0ms", lambda _, lease: lease.fail("no", delay=-1)),
    "code of a failure": ("code", "1 to 200", lambda _, lease: lease.fail("no", code="")),
    "delay of a release": ("delay", "not a duration", lambda _, lease: lease.release(delay="soon")),
    "task of a cancel": ("id", "not text", lambda db, _: db.cancel(7)),
    "task of a requeue": ("id", "1 to 200", lambda db, _: db.requeue(LONG)),
    "unknown condition": ("filter", "queue, kind, state, labels", lambda db, _: db.cancel_many(colour="red")),
    "filter that is no mapping": ("filter", "mapping", lambda db, _: db.cancel_many("reports")),
    "unknown state": ("state", "ready, leased", lambda db, _: db.requeue_many(state="dead")),
    "dry_run that is no flag": ("dry_run", "True or False", lambda db, _: db.cancel_many(dry_run=1)),
    "a page of nothing": ("limit", "1 to 1000", lambda db, _: db.tasks(limit=0)),
    "a page too large": ("limit", "1 to 1000", lambda db, _: db.tasks(limit=1_001)),
    "state of a page": ("state", "ready, leased", lambda db, _: db.tasks(state="READY")),
    "labels of a page": ("labels", "not a mapping", lambda db, _: db.tasks(labels="team")),
    "a page after a number": ("after", "not text", lambda db, _: db.tasks(after=7)),
    "a page of rejections": ("limit", "1 to 1000", lambda db, _: db.rejections(limit=5_000)),
    "rejections before text": ("before", "not a whole number", lambda db, _: db.rejections(before="x")),
    "a watch after text": ("after", "not a whole number", lambda db, _: next(db.watch(after="x"))),
    "pause that is no flag": ("paused", "True or False", lambda db, _: db.queue(QUEUE, paused="yes")),
    "ttl of a queue": ("ttl", "100ms to 1d", lambda db, _: db.queue(QUEUE, ttl=0)),
    "retention of a queue": ("retention", "1m to", lambda db, _: db.queue(QUEUE, retention=59)),
    "age of what leaves": ("older", "1m to", lambda db, _: db.prune(older=0)),
    "dry_run of prune": ("dry_run", "True or False", lambda db, _: db.prune(dry_run="no")),
    "queue of prune": ("queue", "not text", lambda db, _: db.prune(queue=7)),
    "concurrency of nothing": ("concurrency", "pause the queue", lambda db, _: db.queue(QUEUE, concurrency=0)),
    "concurrency that is a flag": ("concurrency", "1 to 100000", lambda db, _: db.queue(QUEUE, concurrency=True)),
    "concurrency beyond": ("concurrency", "1 to 100000", lambda db, _: db.queue(QUEUE, concurrency=100_001)),
    "concurrency of a share": (
        "share_concurrency",
        "1 to 100000",
        lambda db, _: db.queue(QUEUE, share_concurrency="2"),
    ),
    "a rate without a time": ("rate", '"100/m"', lambda db, _: db.queue(QUEUE, rate=3)),
    "a rate of nothing": ("rate", "1 to 1000000", lambda db, _: db.queue(QUEUE, rate="0/s")),
    "a rate in no time": ("rate", "up to 1d", lambda db, _: db.queue(QUEUE, rate="5/0s")),
    "a rate in too long a time": ("rate", "up to 1d", lambda db, _: db.queue(QUEUE, rate="5/25h")),
    "a look at queues by number": ("name", "not text", lambda db, _: db.queues(7)),
    "a look at a share that is a flag": ("share", "give a key", lambda db, _: db.queues(QUEUE, True)),
    "leases that are text": ("leases", "list", lambda db, _: db.renew_many("t")),
    "a lease that is none": ("leases", "lease", lambda db, _: db.renew_many([None])),
    "completions without results": ("completions", "pairs", lambda db, lease: db.complete_many([lease])),
}


@pytest.mark.case("PL-01")
@pytest.mark.parametrize("case", CALLS)
def test_a_call_with_an_argument_that_does_not_fit_is_refused(route: Route, case: str) -> None:
    field, told, call = CALLS[case]
    lease = held(route)
    with refused(route, Invalid, field=field) as caught:
        call(route.db, lease)
    assert str(caught.value).startswith(field)
    assert told in str(caught.value)
    assert caught.value.code == "RELET-INVALID"
    assert lease.renew() == 60


def test_an_argument_that_nobody_knows_is_an_error_of_the_program(route: Route) -> None:
    db: Any = route.db
    with pytest.raises(TypeError):
        db.submit(QUEUE, 1, colour="red")


@pytest.mark.parametrize(
    "handle",
    ["", "r1", "r1.1.s", "r2.1.0.dA", "r1.x.0.dA", "r1.-1.0.dA", "r1.1.0.!!", "r1.99999999999999999.0.dA",
     "r1.1.ü.dA", "x" * 3_000, 7, None, b"r1.1.0.dA", "r1.1.0.\xff"],
    ids=lambda value: str(value)[:20] or "empty",
)  # fmt: skip
def test_a_malformed_handle_is_refused_with_what_to_pass_instead(route: Route, handle: Any) -> None:
    held(route)
    with refused(route, Invalid, field="handle") as caught:
        route.db.lease(handle)
    assert "lease.handle" in str(caught.value)
    with refused(route, Invalid, field="handle"):
        route.db.claim(task_id="t", handle=handle if handle is not None else 0)


def test_a_handle_of_another_store_is_not_found(route: Route) -> None:
    lease = held(route)
    kind, _token, secret, task = lease.handle.split(".")
    with refused(route, NotFound, field="handle") as caught:
        route.db.lease(f"{kind}.987654321.{secret}.{task}")
    assert "made by another store" in str(caught.value)


def test_the_longest_names_and_the_largest_limits_fit(route: Route) -> None:
    db = route.db
    name = "x" * 200
    labels = {f"{n}": name for n in range(32)}
    task = db.submit(
        name, 1, id=name, kind=name, priority=1_000_000, exclusive=name, labels=labels, max_attempts=10_000
    )
    assert db.task(name).labels == labels == task.labels
    lease = db.claim(name, holder=name, ttl="1d", request_id=name)
    assert lease is not None
    assert lease.ttl == 86_400
    assert lease.save(1, name=name) == 1


def test_the_largest_batches_and_pages_fit(route: Route) -> None:
    db = route.db
    assert len(db.submit_many("many", range(1_000))) == 1_000
    assert len(db.claim_many("many", 1_000)) == 1_000
    assert len(db.tasks(queue="many", limit=1_000)) == 1_000


def test_the_shortest_ttl_is_a_tenth_of_a_second(route: Route) -> None:
    lease = held(route, ttl="100ms")
    route.clock.advance("99ms")
    assert lease.renew() == 0.1
