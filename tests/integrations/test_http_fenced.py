"""`send` to a service behind `FenceMiddleware`, on a real socket: what the fence says is heard, and no more."""

import asyncio
import socket
import threading

import httpx2
import pytest
import uvicorn

import relet
from relet.fences import FenceMiddleware, fence_headers
from relet.integrations.http import REFUSALS, Superseded, send
from tests.waiting import Gate

RESOURCE = "order/7"


class Orders:
    """An application behind the middleware: makes an order at each call, and stands still in /slow until told."""

    def __init__(self):
        self.made, self.inside, self.gate = [], Gate(), Gate()

    async def __call__(self, scope, receive, send):
        if scope["path"] == "/slow":
            self.inside.set()
            await asyncio.to_thread(self.gate.pass_through)
        self.made.append(dict(scope["headers"]).get(b"relet-token"))
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"order": 7}'})


@pytest.fixture
def orders():
    return Orders()


@pytest.fixture
def url(orders, tmp_path):
    fenced = FenceMiddleware(orders, store=tmp_path / "tokens.db", patience=0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(fenced, log_level="warning", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            orders.gate.set()
            server.should_exit = True
            thread.join()


@pytest.fixture(params=["Client", "AsyncClient"])
def call(request, url):
    """Make the call of an effect under a token, by a fresh client of either kind."""

    def call(token=7, **options):
        effect = relet.EffectCall(id="e-1", key="k", token=token, attempt=1, repeated=False, timeout=30.0)
        if request.param == "Client":
            with httpx2.Client(trust_env=False) as client:
                return send(client, effect, "POST", f"{url}/orders", **options)

        async def awaited():
            async with httpx2.AsyncClient(trust_env=False) as client:
                return await send(client, effect, "POST", f"{url}/orders", **options)

        return asyncio.run(awaited())

    return call


def test_with_a_resource_token_and_resource_go_out_and_the_call_is_let_through(call, orders):
    assert (call(resource=RESOURCE), orders.made) == ({"order": 7}, [b"7"])


def test_a_later_holder_makes_it_a_stale_token_and_certain_that_nothing_was_done(call, orders):
    call(9, resource=RESOURCE)
    with pytest.raises(Superseded) as refused:
        call(8, resource=RESOURCE)
    assert isinstance(refused.value, relet.StaleToken)
    assert isinstance(refused.value, relet.NotApplied)
    assert (refused.value.token, refused.value.current_token, refused.value.reason) == (8, 9, "superseded")
    assert orders.made == [b"9"]


@pytest.mark.parametrize("refusals", [REFUSALS, ()], ids=["as it is", "none of the service's own"])
def test_a_fence_that_cannot_judge_in_time_lets_nothing_through(call, url, orders, refusals):
    def slow():
        with httpx2.Client(trust_env=False, timeout=30, headers=fence_headers(RESOURCE, 7)) as client:
            client.put(f"{url}/slow")

    before = threading.Thread(target=slow)
    before.start()
    orders.inside.pass_through()
    with pytest.raises(relet.NotApplied, match="RELET-FENCE-BUSY"):
        call(resource=RESOURCE, refusals=refusals)
    assert orders.made == []
    orders.gate.set()
    before.join()


def test_without_a_resource_no_token_goes_out_and_a_service_that_wants_one_says_so(call, orders):
    with pytest.raises(relet.NotApplied, match=r"428 .*RELET-TOKEN-REQUIRED"):
        call()
    assert orders.made == []


def test_a_service_that_is_not_fenced_and_looks_like_it_is_not_believed(service):
    told = {"code": "RELET-FENCE-BUSY", "detail": "busy"}
    service.answers = [(503, told, {"Content-Type": "application/problem+json"})]
    effect = relet.EffectCall(id="e-1", key="k", token=7, attempt=1, repeated=False, timeout=30.0)
    with httpx2.Client(trust_env=False) as client, pytest.raises(httpx2.HTTPStatusError):
        send(client, effect, "POST", f"{service.url}/orders")


def test_a_holder_past_its_own_deadline_sends_nothing(db, call, orders):
    db.submit("work")
    lease = db.claim("work", ttl="60s")

    def freeze():
        with lease.run():
            db.clock.advance("61s")
            call(lease.token, resource=RESOURCE)

    with pytest.raises(relet.LeaseLost) as lost:
        freeze()
    assert isinstance(lost.value.__cause__, relet.NotApplied)
    assert "nothing was sent" in str(lost.value.__cause__)
    assert orders.made == []


def test_an_effect_that_the_fence_refused_is_known_not_to_be_done_and_ends_the_attempt(db, app, settle, url, orders):
    @app.task("work", retry=relet.RetryPolicy(max_attempts=1))
    def work(run):
        def place(payload, effect):
            with httpx2.Client(trust_env=False) as client:
                client.put(f"{url}/orders", headers=fence_headers(RESOURCE, run.token + 1))
                return send(client, effect, "POST", f"{url}/orders", resource=RESOURCE, json=payload)

        return run.effect("order", {"n": 1}, place)

    settle(work.submit(db))
    assert (db.effects()[0].state, len(orders.made)) == ("failed", 1)
