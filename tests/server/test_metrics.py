"""GET /metrics over a real store: every figure is what was done, of one tenant, and costs one look a second."""

import asyncio

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from relet.core.rules.measure import Measure
from relet.server import metrics, passing
from relet.server.exposition import exposition
from relet.server.figures import FIGURES
from relet.server.health import Health
from relet.server.metrics import Metrics
from relet.server.upkeep import Upkeep
from relet.testing import store
from tests.server.inside import headers, site, taken_away
from tests.ticking import Ticking

NAMES = {figure.name for figure in FIGURES}


@pytest.fixture
def look(monkeypatch):
    """Run a story with the site; each scrape of it looks anew."""
    monkeypatch.setattr(metrics, "LOOK_EVERY_S", 0.0)

    def run(story):
        async def told():
            with store() as db:
                async with site(db) as here:
                    await story(here)

        asyncio.run(told())

    return run


def test_every_figure_is_named_before_anything_has_happened(look):
    async def story(here):
        text = (await here.get("/metrics")).text
        families = {one.name for one in text_string_to_metric_families(text)}
        assert {name.removesuffix("_total") for name in NAMES} == {name.removesuffix("_total") for name in families}
        found = await here.figures()
        assert found["relet_service_ready",] == 1
        assert found["relet_effects_unknown",] == found["relet_lapsed_oldest_seconds",] == 0
        assert 0 < found["relet_store_answered_seconds",] < 10
        assert ("relet_store_wrote_seconds",) not in found, "nobody looks after this one"

    look(story)


def test_tasks_are_counted_where_they_stand_each_once(look):
    async def story(here):
        db = here.db
        db.submit_many("q", range(4))
        held, ended, parked = db.claim_many("q", 3, ttl=60)
        ended.complete()
        parked.park("go")
        db.submit("q", 9, delay=60)
        found = await here.figures()
        states = {key[2]: value for key, value in found.items() if key[0] == "relet_tasks"}
        assert states == {
            "ready": 1, "delayed": 1, "live": 1, "lapsed": 0, "waiting": 1, "failed": 0, "cancelled": 0
        }  # fmt: skip
        assert found["relet_tasks_done_total", "q"] == 1
        db.clock.advance(25)
        found = await here.figures()
        assert (found["relet_leases_at_risk", "q"], found["relet_tasks", "q", "live"]) == (1, 1)
        assert found["relet_ready_oldest_seconds", "q"] == 25
        db.clock.advance(75)
        found = await here.figures()
        assert (found["relet_tasks", "q", "lapsed"], found["relet_lapsed_oldest_seconds",]) == (1, 40)
        assert held.token

    look(story)


def test_takeovers_refused_writes_and_unknown_effects_are_told(look):
    async def story(here):
        db = here.db
        status, made = await here.ask("submit", queue="q", kind="k", tasks=[{"id": "a", "input": 1}])
        assert status == 200, made
        _, (grant,) = await here.ask("claim", queues=["q"], holder="A")
        status, _ = await here.ask("start_effect", handle=grant["handle"], name="pay", payload=1,
                                   contract={"kind": "opaque"}, timeout_ms=1_000, call_id="c1")  # fmt: skip
        assert status == 200
        db.clock.advance(61)
        _, (taken,) = await here.ask("claim", queues=["q"], holder="B")
        assert taken["took_over"]["holder"] == "A"
        completion = {"handle": grant["handle"], "result": 1}
        await here.ask("complete", completions=[completion])
        _, (renewed,) = await here.ask("renew", handles=[grant["handle"]])
        assert renewed["error"]["code"] == "RELET-LEASE-LOST", renewed
        db.clock.advance(9)
        found = await here.figures()
        assert found["relet_takeovers_total", "q"] == 1
        assert found["relet_refused_writes_total", "superseded"] >= 1
        assert (found["relet_effects_unknown",], found["relet_effects_unknown_oldest_seconds",]) == (1, 9)
        for name in ("relet_claim_latency_seconds", "relet_takeover_seconds", "relet_renewal_margin_ratio"):
            assert found[f"{name}_count", "q"] == 1
        assert found["relet_renewal_margin_ratio_bucket", "q", "0"] == 1

    look(story)


def test_requests_are_timed_by_operation_and_by_what_came_of_them(look):
    async def story(here):
        await here.ask("task", task_id="none")
        await here.ask("claim", queues=[7], holder="A")
        await here.ask("claim", queues=["q"], holder="A")
        await here.http.post("/v1/claim?wait=0.01", json={"queues": ["q"], "holder": "A"}, headers=headers("default"))
        await here.get("/v1/claim")
        await here.get("/v1/made-up/by-a-stranger")
        await here.get("/healthz", key=None)
        found = await here.figures()
        count = "relet_request_seconds_count"
        assert {key[1:]: value for key, value in found.items() if key[0] == count} == {
            ("task", "RELET-NOT-FOUND"): 1, ("claim", "RELET-INVALID"): 1, ("claim", "ok"): 1,
            ("claim_wait", "ok"): 1, ("claim", "RELET-WRONG-METHOD"): 1, ("other", "RELET-NOT-FOUND"): 1,
            ("healthz", "ok"): 1,
        }  # fmt: skip
        assert (await here.figures())[count, "metrics", "ok"] == 1

    look(story)


def test_who_is_turned_away_is_counted_by_the_reason(look):
    async def story(here):
        await here.ask("claim", None, queues=["q"], holder="A")
        await here.get("/metrics", "bad")
        await here.get("/metrics", "blind")
        await here.http.get("/metrics", headers={**headers("default"), "Host": "evil.example"})
        found = await here.figures()
        refused = {key[1]: value for key, value in found.items() if key[0] == "relet_requests_refused_total"}
        assert refused == {"no_credential": 2, "forbidden": 1, "wrong_host": 1}

    look(story)


def test_a_key_without_the_scope_or_bound_to_a_queue_sees_no_figures(look):
    async def story(here):
        for key, status in ((None, 401), ("bad", 401), ("blind", 403), ("bound-default", 403)):
            answer = await here.get("/metrics", key)
            assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")

    look(story)


def test_a_tenant_sees_nothing_of_another(look):
    async def story(here):
        await here.ask("submit", "theirs", queue="their-queue", kind="k", tasks=[{"id": "a", "input": 1}])
        await here.ask("claim", "theirs", queues=["their-queue"], holder="A")
        mine, theirs = await here.get("/metrics"), await here.get("/metrics", "theirs")
        assert "their-queue" in theirs.text
        assert "their-queue" not in mine.text
        assert 'operation="submit"' not in mine.text

    look(story)


def test_no_label_names_a_task_a_holder_or_a_key(look):
    async def story(here):
        await here.ask("submit", queue="q", kind="secret-kind", tasks=[{"id": "secret-id", "input": 1}],
                       labels={"secret-label": "secret-value"})  # fmt: skip
        _, (grant,) = await here.ask("claim", queues=["q"], holder="secret-holder")
        await here.ask("renew", handles=[grant["handle"]])
        await here.get("/v1/secret-path?secret-query")
        text = (await here.get("/metrics")).text
        assert "secret" not in text
        assert grant["handle"][1 if isinstance(grant["handle"], list) else "secret"] not in text

    look(story)


def test_of_a_tenant_with_many_queues_a_hundred_are_named(look):
    async def story(here):
        for n in range(103):
            here.db.submit(f"q{n:03}", 1)
        here.db.clock.advance(5)
        found = await here.figures()
        ready = {key[1]: value for key, value in found.items() if key[0] == "relet_tasks" and key[2] == "ready"}
        assert (len(ready), ready["other"], sum(ready.values())) == (101, 3, 103)
        assert found["relet_ready_oldest_seconds", "q000"] == 5

    look(story)


def test_the_oldest_of_queues_that_share_a_label_is_the_oldest_of_any(look, monkeypatch):
    monkeypatch.setattr(passing, "QUEUES_MAX", 1)

    async def story(here):
        for queue in ("b", "a", "c"):
            here.db.submit(queue, 1)
            here.db.clock.advance(2)
        found = await here.figures()
        assert (found["relet_ready_oldest_seconds", "a"], found["relet_ready_oldest_seconds", "other"]) == (4, 6)

    look(story)


def test_while_the_store_is_away_the_service_tells_that_and_what_it_knows(look, monkeypatch):
    async def story(here):
        await here.ask("claim", queues=["q"], holder="A")
        taken_away(monkeypatch, here, Measure)
        found = await here.figures()
        assert found["relet_service_ready",] == 0
        assert found["relet_request_seconds_count", "claim", "ok"] == 1
        assert not any(key[0] == "relet_tasks" for key in found)
        monkeypatch.undo()
        await asyncio.sleep(0)

    look(story)


def standing(found):
    """What the figures say of how the service stands."""
    lines = exposition(FIGURES, [found._standing()]).decode().splitlines()
    told = dict(line.split() for line in lines if not line.startswith("#"))
    names = ("service_ready", "store_answered_seconds", "store_wrote_seconds", "news_looked_seconds")
    return [float(told[f"relet_{name}"]) if f"relet_{name}" in told else None for name in names]


def test_ready_is_what_readyz_says_and_no_write_ever_is_as_late_as_none_for_so_long(served):
    """A service over a store that it may only read, from its first minute on."""
    clock = Ticking()
    tending = Upkeep(served.service, clock)
    health = Health(served.service, tending, clock)
    found = Metrics(served.service, health)
    assert standing(found) == [0, None, None, None], "nothing is begun, and nobody has asked the store"
    tending.begun_at = served.service.news.begun_at = 0.0
    health.answered(0.0)
    assert standing(found) == [1, 0.001, 0.001, 0.001]
    served.service.news.looked_at = clock.now = 31.0
    health.answered(clock.now)
    assert health.standing().wrong == ["wrote"]
    assert standing(found) == [0, 0.001, 31.001, 0.001]
    tending.wrote_at = clock.now
    assert standing(found) == [1, 0.001, 0.001, 0.001]


def test_many_who_look_share_one_look_at_the_store(monkeypatch):
    async def story():
        with store() as db:
            asked = []
            called = type(db.backend).call

            def call(backend, ask, **options):
                asked.append(ask)
                return called(backend, ask, **options)

            monkeypatch.setattr(type(db.backend), "call", call)
            monkeypatch.setattr(metrics, "LOOK_EVERY_S", 3_600.0)
            async with site(db) as here:
                await asyncio.gather(*(here.figures() for _ in range(20)))
                await here.figures()
                assert asked == [Measure()]
                await here.figures("theirs")
                assert asked == [Measure()] * 2, "each tenant has its own"
                monkeypatch.setattr(metrics, "LOOK_EVERY_S", 0.0)
                await here.figures()
                assert len(asked) == 3

    asyncio.run(story())


def test_streams_are_counted_while_they_are_open_and_not_timed(look):
    async def story(here):
        sent, begun, over = [], asyncio.Event(), asyncio.Event()

        async def receive():
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            begun.set()

        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
            "path": "/v1/news", "raw_path": b"/v1/news", "query_string": b"", "scheme": "http",
            "headers": [(b"host", b"testserver"), (b"authorization", b"Bearer default")],
        }  # fmt: skip
        stream = asyncio.create_task(here.http._transport.app(scope, receive, send))
        await asyncio.wait_for(begun.wait(), 10)
        assert sent[0]["status"] == 200, msgspec.json.encode(str(sent))
        assert (await here.figures())["relet_streams_open",] == 1
        over.set()
        await asyncio.wait_for(stream, 10)
        found = await here.figures()
        assert found["relet_streams_open",] == 0
        assert not any(key[0] == "relet_request_seconds_count" and key[1] == "other" for key in found)

    look(story)
