"""A fence in front of a web service: look and handler are one step, and whoever comes late is told so."""

import asyncio
import contextlib
from types import SimpleNamespace

import httpx2
import msgspec
import pytest

import relet
from relet.fences import FenceMiddleware, HttpFence, fence_headers
from relet.fences.http import HttpTarget
from tests.fences.conftest import APP
from tests.processes.program import Programs


class Service:
    """An application that notes what reached it, and can be held in the middle of a request."""

    def __init__(self):
        self.seen = []
        self.hold = {}

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            self.seen.append("lifespan")
            return
        if scope["type"] == "websocket":
            self.seen.append("websocket")
            await send({"type": "websocket.accept"})
            return
        entered, leave = self.hold.get(scope["path"], (None, None))
        if entered:
            entered.set()
            await leave.wait()
        if scope["path"] == "/fails":
            raise ValueError("midway")
        self.seen.append(f"{scope['method']} {scope['path']}")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    def held_at(self, path):
        self.hold[path] = asyncio.Event(), asyncio.Event()
        return self.hold[path]


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def fenced(service, tmp_path):
    """Makes the middleware around the service."""
    return lambda **options: FenceMiddleware(service, **{"store": tmp_path / "tokens.db"} | options)


def client(app):
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://here", timeout=30)


def ask(app, *requests):
    """The answers, one after the other; each request is method, path and headers."""

    async def run():
        async with client(app) as far:
            return [await far.request(method, path, headers=headers) for method, path, headers in requests]

    return asyncio.run(run())


def under(token, resource="order-7"):
    return fence_headers(resource, token)


def test_a_smaller_token_is_refused_and_does_not_reach_the_application(fenced, service):
    good, late, equal = ask(fenced(), ("PUT", "/a", under(2)), ("POST", "/b", under(1)), ("DELETE", "/c", under(2)))
    assert (good.status_code, equal.status_code) == (200, 200)
    assert (late.status_code, late.headers["content-type"]) == (409, "application/problem+json")
    problem = late.json()
    assert (problem["code"], problem["token"], problem["current_token"]) == ("RELET-STALE-TOKEN", 1, 2)
    assert (problem["status"], problem["resource"], problem["reason"]) == (409, "order-7", "superseded")
    assert service.seen == ["PUT /a", "DELETE /c"]


def test_a_change_without_a_token_is_refused_and_a_look_passes(fenced, service):
    answers = ask(fenced(), *((method, "/a", {}) for method in ("PUT", "POST", "PATCH", "DELETE", "FROB")))
    assert {answer.status_code for answer in answers} == {428}
    assert {answer.json()["code"] for answer in answers} == {"RELET-TOKEN-REQUIRED"}
    assert service.seen == []
    assert [answer.status_code for answer in ask(fenced(), ("GET", "/a", {}), ("HEAD", "/a", {}))] == [200, 200]


def test_a_look_under_a_token_is_judged_too_and_raises_the_fence(fenced, service):
    answers = ask(fenced(), ("GET", "/a", under(2)), ("GET", "/a", under(1)), ("PUT", "/a", under(1)))
    assert [answer.status_code for answer in answers] == [200, 409, 409]
    assert service.seen == ["GET /a"]


def test_what_needs_a_token_is_yours_to_say(fenced, service):
    app = fenced(guarded=lambda scope: scope["path"].startswith("/orders"))
    answers = ask(
        app, ("PUT", "/orders/7", {}), ("GET", "/orders/7", {}), ("PUT", "/free", {}), ("PUT", "/free", under(1))
    )
    assert [answer.status_code for answer in answers] == [428, 428, 200, 200]
    answers = ask(fenced(unmarked="pass"), ("PUT", "/a", {}), ("PUT", "/a", under(2)), ("PUT", "/a", under(1)))
    assert [answer.status_code for answer in answers] == [200, 200, 409]
    with pytest.raises(relet.Invalid, match=r'unmarked: .* is neither "refuse" nor "pass"'):
        fenced(unmarked="maybe")


@pytest.mark.parametrize(
    "headers",
    [
        [("Relet-Token", "1")],
        [("Relet-Resource", "a")],
        [("Relet-Token", ""), ("Relet-Resource", "a")],
        [("Relet-Token", "0"), ("Relet-Resource", "a")],
        [("Relet-Token", "-1"), ("Relet-Resource", "a")],
        [("Relet-Token", "+1"), ("Relet-Resource", "a")],
        [("Relet-Token", "1_0"), ("Relet-Resource", "a")],
        [("Relet-Token", "1.0"), ("Relet-Resource", "a")],
        [("Relet-Token", "\xb2"), ("Relet-Resource", "a")],
        [("Relet-Token", "9" * 5000), ("Relet-Resource", "a")],
        [("Relet-Token", str(1 << 53)), ("Relet-Resource", "a")],
        [("Relet-Token", "1"), ("Relet-Resource", "")],
        [("Relet-Token", "1"), ("Relet-Resource", "a%00b")],
        [("Relet-Token", "1"), ("Relet-Resource", "%ff")],
        [("Relet-Token", "1"), ("Relet-Resource", "a" * 201)],
        [("Relet-Token", "1"), ("Relet-Token", "2"), ("Relet-Resource", "a")],
        [("Relet-Token", "1"), ("Relet-Resource", "a"), ("Relet-Resource", "b")],
    ],
    ids=lambda headers: ascii(headers)[:60],
)
def test_headers_that_are_no_token_and_resource_are_refused(fenced, service, headers):
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    (answer,) = ask(fenced(unmarked="pass"), ("PUT", "/a", raw))
    assert (answer.status_code, answer.json()["code"]) == (400, "RELET-INVALID")
    assert service.seen == []


def test_what_a_request_is_about_can_be_the_servers_to_say(fenced, service):
    app = fenced(resource=lambda scope: scope["path"])
    answers = ask(
        app,
        ("PUT", "/a", under(2, "/a")),
        ("PUT", "/b", under(1, "/b")),
        ("PUT", "/a", under(9, "/b")),
        ("PUT", "/a", {"Relet-Token": "1"}),
        ("PUT", "/a", {"Relet-Token": "2"}),
    )
    assert [answer.status_code for answer in answers] == [200, 200, 400, 409, 200]
    assert service.seen == ["PUT /a", "PUT /b", "PUT /a"]


def test_a_bare_raise_is_answered_by_the_middleware(fenced, service):
    path = "/below/.well-known/relet-fence"
    answers = ask(
        fenced(), ("PUT", path, under(2)), ("PUT", path, under(1)), ("PUT", path, {}), ("PUT", "/a", under(1))
    )
    assert [answer.status_code for answer in answers] == [204, 409, 428, 409]
    assert service.seen == []


def test_a_websocket_needs_a_token_as_well(fenced, service):
    async def connect(app, headers):
        sent = []

        async def send(message):
            sent.append(message["type"])

        scope = {"type": "websocket", "path": "/live", "headers": headers}
        await app(scope, None, send)
        return sent

    good = [(name.lower().encode(), value.encode()) for name, value in under(1).items()]
    assert asyncio.run(connect(fenced(), [])) == ["websocket.close"]
    assert service.seen == []
    assert asyncio.run(connect(fenced(), good)) == ["websocket.accept"]


def test_a_lifespan_passes(fenced, service):
    asyncio.run(fenced()({"type": "lifespan"}, None, None))
    assert service.seen == ["lifespan"]


def test_the_look_at_the_token_and_the_handler_are_one_step(fenced, service):
    """A newer holder's raise waits for the handler that is under way; after it no older request gets in."""

    async def run():
        async with client(fenced()) as far:
            entered, leave = service.held_at("/slow")
            slow = asyncio.create_task(far.put("/slow", headers=under(1)))
            await entered.wait()
            raised = asyncio.create_task(far.put("/.well-known/relet-fence", headers=under(2)))
            elsewhere = await far.put("/other", headers=under(1, "order-8"))
            assert not raised.done()
            leave.set()
            answers = [elsewhere, await slow, await raised, await far.put("/late", headers=under(1))]
            return [answer.status_code for answer in answers]

    assert asyncio.run(run()) == [200, 200, 204, 409]
    assert service.seen == ["PUT /other", "PUT /slow"]


def test_a_handler_that_does_not_end_makes_the_next_one_unavailable_in_time(fenced, service):
    async def run():
        async with client(fenced(patience="20ms")) as far:
            entered, leave = service.held_at("/slow")
            slow = asyncio.create_task(far.put("/slow", headers=under(1)))
            await entered.wait()
            busy = await far.put("/next", headers=under(2))
            leave.set()
            return busy, await slow, await far.put("/next", headers=under(2))

    busy, slow, following = asyncio.run(run())
    assert (busy.status_code, busy.json()["code"]) == (503, "RELET-FENCE-BUSY")
    assert (slow.status_code, following.status_code) == (200, 200)


@pytest.mark.parametrize("ending", ["error", "cancel"])
def test_a_handler_that_fails_or_is_cancelled_lets_the_next_one_in_and_leaves_no_lock(fenced, service, ending):
    async def run():
        app = fenced()
        async with client(app) as far:
            if ending == "error":
                with pytest.raises(ValueError, match="midway"):
                    await far.put("/fails", headers=under(1))
            else:
                entered, _ = service.held_at("/slow")
                slow = asyncio.create_task(far.put("/slow", headers=under(1)))
                await entered.wait()
                slow.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await slow
            answer = await far.put("/next", headers=under(2))
            return answer.status_code, app._locks

    assert asyncio.run(run()) == (200, {})


def test_tokens_outlive_the_server(fenced):
    assert ask(fenced(), ("PUT", "/a", under(2)))[0].status_code == 200
    assert ask(fenced(), ("PUT", "/a", under(1)))[0].status_code == 409


def test_a_store_that_cannot_be_used_is_away_and_nothing_is_done(fenced, service, tmp_path):
    (answer,) = ask(fenced(store=tmp_path / "gone" / "tokens.db"), ("PUT", "/a", under(1)))
    assert (answer.status_code, answer.json()["code"]) == (503, "RELET-CANNOT-OPEN")
    assert service.seen == []


def test_any_fence_will_do_as_the_store(fenced, tmp_path):
    from relet.fences import FileFence

    answers = ask(fenced(store=FileFence(tmp_path)), ("PUT", "/a", under(2)), ("PUT", "/a", under(1)))
    assert [answer.status_code for answer in answers] == [200, 409]
    assert (tmp_path / ".relet-fences" / "order-7.token").read_text() == "2\n"
    (answer,) = ask(fenced(store=FileFence(tmp_path)), ("PUT", "/a", under(2, "a/b")))
    assert answer.status_code == 400


def answering(status, problem=None):
    """A client whose every request gets this answer."""
    headers = {"content-type": "application/problem+json"} if problem is not None else {}
    answer = SimpleNamespace(status_code=status, headers=headers, content=msgspec.json.encode(problem))
    return SimpleNamespace(request=lambda *_, **__: answer)


def test_the_client_turns_problems_into_the_errors_that_they_are():
    stale = {"code": "RELET-STALE-TOKEN", "token": 1, "current_token": 2}
    with pytest.raises(relet.StaleToken) as refused:
        HttpFence(answering(409, stale)).raise_to("order-7", 1)
    assert (refused.value.token, refused.value.current_token) == (1, 2)
    with pytest.raises(relet.Unavailable, match="later"):
        HttpFence(answering(503, {"code": "RELET-FENCE-BUSY", "detail": "later"})).raise_to("order-7", 1)
    with pytest.raises(relet.Invalid, match="wrong"):
        HttpFence(answering(400, {"code": "RELET-INVALID", "detail": "wrong"})).raise_to("order-7", 1)


def test_the_service_of_somebody_else_answers_what_it_likes():
    for status, problem in [(204, None), (409, {"title": "out of stock"}), (503, {}), (400, {"code": "EMPTY"})]:
        target = HttpTarget(answering(status, problem), "order-7", 1)
        assert target.request("PUT", "/a").status_code == status


def test_a_raise_that_nobody_understood_is_not_taken_for_one():
    for status in (200, 404, 405, 500):
        with pytest.raises(relet.Unavailable, match="no fence answered") as refused:
            HttpFence(answering(status)).raise_to("order-7", 1)
        assert refused.value.code == "RELET-FENCE-TARGET"


def test_headers_of_your_own_go_along_and_the_token_cannot_be_overwritten():
    sent = []
    far = SimpleNamespace(request=lambda *_, headers, **__: sent.append(headers) or answering(204).request())
    with HttpFence(far).write("órder", 7) as target:
        target.request("PUT", "/a", headers={"X-Trace": "1", "Relet-Token": "9"})
    assert sent[-1] == {"X-Trace": "1", "Relet-Token": "7", "Relet-Resource": "%C3%B3rder"}


@pytest.mark.parametrize(("resource", "token"), [("", 1), ("a", 0), ("a", True), (None, 1), ("a", 1 << 53)])
def test_headers_are_made_of_good_arguments_alone(resource, token):
    with pytest.raises(relet.Invalid):
        fence_headers(resource, token)


@pytest.mark.slow
def test_a_raise_outlives_a_crash_of_the_server(tmp_path):
    with Programs(tmp_path) as programs:
        for token in (2, 1):
            program = programs.start(APP, tmp_path / "tokens.db")
            with httpx2.Client(base_url=program.line()) as far:
                if token == 2:
                    HttpFence(far).raise_to("order-7", token)
                else:
                    with pytest.raises(relet.StaleToken):
                        HttpFence(far).raise_to("order-7", token)
            program.process.kill()
            program.wait()
