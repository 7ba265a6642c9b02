"""Every field of every request has its bounds, and they are those that our own client keeps to."""

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta, structs

from relet.client import asks, work_asks
from relet.client.files import Filed
from relet.client.renewal import renewal
from relet.core import limits
from relet.core.backend import Request
from relet.core.catalog import BY_REQUEST, OPERATIONS
from relet.core.errors import Invalid
from relet.core.fields import Name
from relet.core.model import Handle
from relet.core.received import received
from relet.core.shapes import fields, joined, shape
from relet.core.wire import encode
from relet.core.work import Contract, ContractKind
from tests.core.stranger import LEAVES, body, wrong_values

HANDLE = Handle("t", 5, "secret")


def unbounded(struct, path=""):
    """The fields that anything of their type may stand in."""
    for name, hint in fields(struct).items():
        yield from _unbounded(joined(path, name), shape(hint))


def _unbounded(path, wanted):
    if issubclass(wanted.kind, msgspec.Struct):
        yield from unbounded(wanted.kind, path)
        return
    for part in wanted.parts:
        yield from _unbounded(f"{path}[]", shape(part))
    meta = wanted.meta or Meta()
    match wanted.kind:
        case kind if issubclass(kind, Enum) or kind in (bool, tuple, msgspec.Raw):
            bounded = True
        case kind if kind is str:
            bounded = meta.pattern is not None and (meta.max_length is not None or "{64}" in meta.pattern)
        case kind if kind in (int, float):
            bounded = meta.ge is not None and meta.le is not None
        case kind if kind in (list, dict):
            bounded = meta.max_length is not None
        case _:
            bounded = False
    if not bounded or (wanted.meta is not None and meta.description is None):
        yield path


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_field_has_bounds(operation):
    assert list(unbounded(operation.request)) == []


def test_a_field_without_a_bound_is_found():
    class Inner(msgspec.Struct):
        n: Annotated[int, Meta(ge=0)]
        raw: msgspec.Raw
        name: Name

    class Loose(msgspec.Struct):
        text: str
        inner: list[Inner] | None
        pairs: Annotated[dict[str, Name], Meta(max_length=3, description="few")]
        cost: float
        anything: object

    assert list(unbounded(Loose)) == ["text", "inner[].n", "inner", "pairs[]", "cost", "anything"]


@pytest.mark.parametrize("leaf", LEAVES, ids=str)
def test_a_wrong_value_is_refused_by_the_name_of_its_field(leaf):
    for value in wrong_values(leaf.shape):
        with pytest.raises(Invalid) as refused:
            received(leaf.operation, body(leaf, value))
        assert refused.value.detail == {"field": leaf.path}, str(refused.value)
        assert refused.value.message.startswith(f"{leaf.path}: ")


def ms(value):
    return timedelta(milliseconds=value)


def at(value):
    return datetime.fromtimestamp(value / 1_000, UTC)


MS, S = limits.DURATION_MS_MAX, 1_000
SPANS = (0, 1, MS, MS + 1)
TTLS = (0, limits.TTL_MS_MIN - 1, limits.TTL_MS_MIN, limits.TTL_MS_MAX, limits.TTL_MS_MAX + 1)
HOLDS = (limits.TTL_MS_MIN - 1, limits.TTL_MS_MIN, MS, MS + 1)
AGES = (limits.PRUNE_AGE_MS_MIN - 1, limits.PRUNE_AGE_MS_MIN, MS, MS + 1)
COUNTS = (0, 1, limits.ATTEMPTS_MAX, limits.ATTEMPTS_MAX + 1)
PAGES = (0, 1, limits.PAGE_ITEMS_MAX, limits.PAGE_ITEMS_MAX + 1)
CURSORS = (-1, 0, limits.TOKEN_MAX, limits.TOKEN_MAX + 1)
NAMES = ("", "a", "a" * 200, "a" * 201, "ü\u200b", "a\x00", "a\n", "a\x7f", "\x1f", "\U0010ffff")
ASKS = [
    ("ttl_ms", TTLS, lambda value: asks.claim("q", "A", ttl=ms(value))),
    ("ttl_ms", TTLS, lambda value: renewal([HANDLE], ms(value))),
    ("ttl_ms", TTLS, lambda value: queue(ttl=ms(value))),
    ("timeout_ms", SPANS, lambda value: submit(timeout=ms(value))),
    ("max_hold_ms", HOLDS, lambda value: submit(max_hold=ms(value))),
    ("max_attempts", COUNTS, lambda value: submit(max_attempts=value)),
    ("max_losses", COUNTS, lambda value: queue(max_losses=value)),
    ("delay_ms", SPANS, lambda value: submit(delay=ms(value))),
    ("priority", (-1_000_001, -1_000_000, 1_000_000, 1_000_001), lambda value: submit(priority=value)),
    ("at_wall_ms", (0, limits.WALL_MS_MAX), lambda value: submit(at=at(value))),
    ("deadline_wall_ms", (0, limits.WALL_MS_MAX), lambda value: submit(deadline=at(value))),
    ("kind", NAMES, lambda value: submit(kind=value)),
    ("exclusive", NAMES, lambda value: submit(exclusive=value)),
    ("share", NAMES, lambda value: submit(share=value)),
    ("holder", NAMES, lambda value: asks.claim("q", value)),
    ("task_id", NAMES, lambda value: asks.claim(None, "A", task=value)),
    ("request_id", NAMES, lambda value: asks.claim("q", "A", request_id=value)),
    ("n", (0, 1, limits.CLAIM_ITEMS_MAX, limits.CLAIM_ITEMS_MAX + 1), lambda value: asks.claim("q", "A", n=value)),
    ("name", NAMES, lambda value: asks.save(HANDLE, 1, value)),
    ("delay_ms", SPANS, lambda value: asks.release(HANDLE, ms(value))),
    ("code", NAMES, lambda value: asks.fail(HANDLE, "e", True, None, value)),
    ("task_id", NAMES, asks.find_task),
    ("limit", PAGES, lambda value: asks.list_tasks(asks.task_filter(None), value, None)),
    ("after", NAMES, lambda value: asks.list_tasks(asks.task_filter(None), 1, value)),
    ("after", CURSORS, lambda value: asks.changes(value, None, None)),
    ("before", CURSORS, lambda value: asks.rejections(None, 1, value)),
    ("queue", NAMES, asks.advise),
    ("older_ms", AGES, lambda value: asks.prune(None, ms(value), False, 0)),
    ("retention_ms", AGES, lambda value: queue(retention=ms(value))),
    ("concurrency", (1, limits.CONCURRENCY_MAX, limits.CONCURRENCY_MAX + 1), lambda value: queue(concurrency=value)),
    ("timeout_ms", SPANS, lambda value: work_asks.park(HANDLE, "n", "approval", 1, ms(value), None)),
    ("name", NAMES, lambda value: work_asks.signal("t", value, 1)),
    ("by", NAMES, lambda value: work_asks.decide("t", "n", "accept", 1, value, None)),
    ("digest", NAMES, lambda value: work_asks.decide("t", "n", "accept", 1, "ann", value)),
    ("effect_id", NAMES, lambda value: work_asks.reconcile(value, "applied", 1, "ann")),
    ("key", NAMES, lambda value: effect(key=value)),
]  # fmt: skip


def submit(**options):
    return asks.submit("q", [1], ["t"], **options)


def queue(**knobs):
    given = dict.fromkeys((
        "paused", "ttl", "timeout", "max_hold", "max_attempts", "max_losses", "concurrency", "share_concurrency",
        "rate", "retention",
    ))  # fmt: skip
    return asks.set_queue("q", **given | knobs)


def effect(key=None):
    return work_asks.start_effect(HANDLE, "pay", 1, Contract(kind=ContractKind.OPAQUE), timeout_ms=1, key=key)


@pytest.mark.parametrize(("field", "values", "ask"), ASKS, ids=[f"{n}-{case[0]}" for n, case in enumerate(ASKS)])
def test_a_stranger_may_send_what_our_client_sends_and_nothing_else(field, values, ask):
    good = next(made for value in values if (made := accepted(ask, value)) is not None)
    outcomes = {value: accepted(ask, value) is not None for value in values}
    for value, is_fine in outcomes.items():
        sent = encode(structs.replace(good, **{field: value}))
        if is_fine:
            received(BY_REQUEST[type(good)], sent)
            continue
        with pytest.raises(Invalid) as refused:
            received(BY_REQUEST[type(good)], sent)
        assert refused.value.detail == {"field": field}


def accepted(ask, value):
    try:
        return ask(value)
    except Invalid:
        return None


SAID = [
    submit(delay=5, labels={"team": "ü"}, deadline=at(5_000), under=HANDLE),
    asks.submit("q", [], None),
    asks.submit("q", [{"b": 1, "a": [1.0, -0.0, 1e23, "\u2028\U0001f600"]}, None], None, share="customer-7"),
    asks.submit("q", [Filed(msgspec.Raw(b'{"relet:artifact":"%s","size":300000}' % (b"0" * 64)))], ["t"]),
    asks.claim(["q", "r", "q"], "A", n=3, kinds={"b", "a"}, handlers={"k": asks.knobs(base=1)}, request_id="r"),
    asks.claim(None, "A", task="t", handle=asks.border.handle_text(HANDLE)),
    asks.once_more(asks.claim("q", "A", request_id="r")),
    renewal([HANDLE, HANDLE], 60),
    asks.complete([(HANDLE, {"b": 1, "a": 2})], asks.claim("q", "A")),
    asks.fail(HANDLE, "x" * 20_000 + "\x00", True, 5, "E1"),
    asks.release(HANDLE, None or 0),
    asks.cancel("t", ""),
    asks.cancel_many(asks.task_filter({"state": "ready"}, labels={"a": "b"}), "\ud800", True, 9),
    asks.requeue_many(asks.task_filter(None, queue="q"), False, 0),
    queue(paused=True, rate="100/m", retention="none", concurrency="none"),
    queue(rate="none"),
    asks.queues(None, None, "q"),
    asks.history("t", 5),
    work_asks.park(HANDLE, "n", "approval", {"b": 1, "a": 2}, 5, {"kind": "edit", "value": {"z": 1, "a": 2}}),
    work_asks.park(HANDLE, "n", "signal", None, 5, "value"),
    work_asks.park(HANDLE, "n", "timer", None, 5, None),
    work_asks.settling(effect(), "e-1", 3 * MS / S),
    work_asks.reconciling(effect(), type("Start", (), {"id": "e-1", "attempt": 3})),
    work_asks.decide("t", "n", "respond", "yes", "ann", "d"),
    work_asks.reconcile("e-1", "not_applied", None, "ann"),
    work_asks.effects("unknown", "t", None, 5),
    work_asks.progress(HANDLE, "x" * 20_000),
    effect(key="order-7"),
]  # fmt: skip


@pytest.mark.parametrize("ask", SAID, ids=[f"{n}-{type(ask).__name__}" for n, ask in enumerate(SAID)])
def test_what_our_client_asks_is_received_as_it_was_meant(ask):
    body = encode(ask)
    again = received(BY_REQUEST[type(ask)], body)
    assert encode(again) == body
    assert type(again) is type(ask)


def test_a_request_that_says_nothing_of_its_fields_among_each_other_is_at_odds_with_nothing():
    assert Request().at_odds() is None
