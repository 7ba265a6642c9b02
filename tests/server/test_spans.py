"""Requests to the service as spans, by the API of opentelemetry alone."""

import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from relet.core.rules.claim import Claim
from relet.server import spans as rooms
from relet.testing import store
from tests.server.inside import headers, site, taken_away
from tests.spans import keep_spans, nothing_is_current

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def spans(monkeypatch):
    return keep_spans(monkeypatch)


def told(story):
    async def run():
        with store() as db:
            async with site(db) as here:
                await story(here)

    asyncio.run(run())


def test_a_request_is_a_span_that_says_whose_task_it_was_about(spans):
    async def story(here):
        await here.ask("submit", queue="q", kind="k", tasks=[{"id": "a", "input": 1}])
        _, (grant,) = await here.ask("claim", queues=["q"], holder="A")
        await here.ask("release", handle=grant["handle"])
        token = here.db.history("a")[1].token
        assert [span.name for span in spans] == ["relet.submit", "relet.claim", "relet.release"]
        submit, claim, release = (span.attributes for span in spans)
        assert submit == {
            "relet.operation": "submit", "http.request.method": "POST", "http.response.status_code": 200
        }  # fmt: skip
        about = {"relet.task_id": "a", "relet.token": token}
        assert claim.items() >= {**about, "relet.queue": "q", "relet.attempt": 1}.items()
        assert release.items() >= about.items()
        assert all(span.ended and span.status is None for span in spans)
        assert nothing_is_current()

    told(story)


def test_where_no_sdk_was_set_up_none_is_made(spans, monkeypatch):
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)

    async def story(here):
        assert (await here.ask("claim", queues=["q"], holder="A"))[0] == 200
        assert spans == []

    told(story)


def test_what_a_completion_claims_next_names_its_span_and_a_batch_names_none(spans):
    async def story(here):
        here.db.submit_many("q", range(4), ids=["a", "b", "c", "d"])
        _, (grant,) = await here.ask("claim", queues=["q"], holder="A")
        following = {"queues": ["q"], "holder": "A"}
        await here.ask("complete", completions=[{"handle": grant["handle"], "result": 1}], next=following)
        await here.ask("claim", queues=["q"], holder="A", n=2)
        assert [span.attributes.get("relet.task_id") for span in spans] == ["a", "b", None]

    told(story)


def test_a_request_goes_on_with_the_trace_of_whoever_asks(spans):
    async def story(here):
        sent = {**headers("default"), "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        await here.http.post("/v1/claim", json={"queues": ["q"], "holder": "A"}, headers=sent)
        assert f"{spans[0].parent.trace_id:032x}" == TRACE

    told(story)


def test_a_refusal_is_no_error_of_the_service_and_an_outage_is(spans, monkeypatch):
    async def story(here):
        await here.ask("task", task_id="none")
        taken_away(monkeypatch, here, Claim)
        await here.ask("claim", queues=["q"], holder="A")
        came = [(span.attributes["http.response.status_code"], span.status) for span in spans]
        assert came == [(404, None), (503, StatusCode.ERROR)]

    told(story)


def test_who_is_turned_away_at_the_gate_and_who_only_looks_makes_no_span(spans):
    async def story(here):
        await here.ask("claim", None, queues=["q"], holder="A")
        await here.get("/healthz")
        await here.get("/metrics")
        assert spans == []

    told(story)


def test_without_the_package_there_is_no_span_and_all_goes_on(spans, monkeypatch):
    monkeypatch.setattr(rooms, "find_spec", lambda _name: None)

    async def story(here):
        assert (await here.ask("claim", queues=["q"], holder="A"))[0] == 200
        assert spans == []

    told(story)
