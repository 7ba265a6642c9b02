"""`relet.integrations.http.send`: the key goes out with the call, and each answer is taken for what it says."""

import asyncio
import socket
import sys

import httpx2
import pytest

import relet
from relet.integrations.http import REFUSALS, send

EFFECT = relet.EffectCall(id="e-1", key="relet-key", token=7, attempt=1, repeated=False, timeout=5.0)


@pytest.fixture(params=["Client", "AsyncClient"])
def call(request, service):
    """Make one call by a fresh client of either kind; what it gave, or raised."""

    def call(method="POST", url=None, effect=EFFECT, **options):
        url = f"{service.url}/orders" if url is None else url
        if request.param == "Client":
            with httpx2.Client(trust_env=False) as client:
                return send(client, effect, method, url, **options)

        async def awaited():
            async with httpx2.AsyncClient(trust_env=False) as client:
                return await send(client, effect, method, url, **options)

        return asyncio.run(awaited())

    return call


def cut_off(request):
    """Half of what was announced, and the end."""
    request.send_response(200)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", "100")
    request.end_headers()
    request.wfile.write(b'{"id": ')
    request.wfile.flush()
    request.connection.shutdown(socket.SHUT_RDWR)


def hang_up(request):
    request.connection.shutdown(socket.SHUT_RDWR)


def test_key_and_payload_go_out_and_the_json_of_the_answer_is_the_receipt(call, service):
    service.answers = [(201, {"order": "o-7"})]
    assert call(json={"n": 1}, headers={"Authorization": "Bearer x"}) == {"order": "o-7"}
    ((path, headers, told),) = service.seen
    assert (path, told) == ("/orders", {"n": 1})
    sent = {name: headers.get(name) for name in ("Idempotency-Key", "Relet-Token", "Authorization")}
    assert sent == {"Idempotency-Key": "relet-key", "Relet-Token": None, "Authorization": "Bearer x"}


def test_an_answer_without_json_is_kept_by_its_facts(call, service):
    service.answers = [(204, b"", {"Content-Type": "text/plain", "Location": "/orders/7"})]
    assert call() == {"status": 204, "location": "/orders/7"}
    service.answers = [(200, b"OK", {"Content-Type": "text/plain"})]
    assert call("PUT") == {"status": 200, "location": None, "text": "OK"}


def test_a_receipt_may_be_made_of_the_answer_by_the_program(call, service):
    assert call(receipt=lambda response: response.headers["content-type"]) == "application/json"
    assert len(service.seen) == 1


@pytest.mark.parametrize("status", sorted(REFUSALS))
def test_a_status_that_says_it_was_not_done_is_raised_as_not_applied(call, service, status):
    service.answers = [(status, {"error": "no funds"})]
    with pytest.raises(relet.NotApplied) as refused:
        call(url=f"{service.url}/orders?token=secret")
    assert f"POST {service.url}/orders: {status} " in str(refused.value)
    assert "no funds" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("status", [302, 303, 307, 408, 409, 500, 502, 503, 504, 599])
def test_a_status_that_does_not_say_leaves_it_unknown(call, service, status):
    service.answers = [(status, {"error": "perhaps"}, {"Location": "/elsewhere"})]
    with pytest.raises(httpx2.HTTPStatusError) as unknown:
        call(url=f"{service.url}/orders?token=secret")
    assert str(status) in str(unknown.value)
    assert "secret" not in str(unknown.value)
    assert len(service.seen) == 1, "a redirect is not followed"


def test_what_a_service_documents_otherwise_is_said_by_the_program(call, service):
    service.answers = [(409, {"error": "there is one"})]
    with pytest.raises(relet.NotApplied):
        call(refusals=REFUSALS | {409})


@pytest.mark.parametrize("answer", [cut_off, hang_up], ids=["cut off", "hung up"])
def test_an_answer_that_breaks_off_leaves_it_unknown(call, service, answer):
    service.answers = [answer]
    with pytest.raises(httpx2.TransportError):
        call()
    assert len(service.seen) == 1


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_a_breach_of_the_protocol_by_the_client_itself_may_come_after_all_was_sent(kind):
    def breach(request):
        raise httpx2.LocalProtocolError("Can't receive data in this state", request=request)

    def order():
        done = send(getattr(httpx2, kind)(transport=transport), EFFECT, "POST", "http://shop.invalid/orders")
        return asyncio.run(done)

    transport = httpx2.MockTransport(breach)
    with pytest.raises(httpx2.LocalProtocolError):
        order()


def test_an_answer_that_is_no_json_though_it_says_so_leaves_it_unknown(call, service):
    service.answers = [(200, b"{broken")]
    with pytest.raises(ValueError, match="Expecting property name"):
        call()


def test_an_answer_that_does_not_come_in_time_leaves_it_unknown(call, service):
    service.answers = [lambda request: service.gate.pass_through()]
    effect = relet.EffectCall(id="e-1", key="k", token=7, attempt=1, repeated=False, timeout=1.0)
    with pytest.raises(httpx2.ReadTimeout):
        call(effect=effect)
    service.gate.set()


def test_a_refused_connection_means_that_nothing_was_sent(call):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(relet.NotApplied, match="nothing was sent: ConnectError"):
            call(url=f"http://127.0.0.1:{taken.getsockname()[1]}/orders")


def test_a_name_that_is_not_known_means_that_nothing_was_sent(call, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(relet.NotApplied, match="nothing was sent"):
        call(url="http://shop.invalid/orders")


@pytest.mark.parametrize("url", ["ftp://shop.invalid/", "no url"])
def test_an_address_that_is_none_means_that_nothing_was_sent(call, url):
    with pytest.raises(relet.NotApplied, match="nothing was sent"):
        call(url=url)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"timeout": 3}, "timeout"), ({"follow_redirects": True}, "follow_redirects"),
        ({"headers": {"idempotency-key": "mine"}}, "headers"),
    ],
    ids=["timeout", "follow_redirects", "headers"],
)  # fmt: skip
def test_what_the_effect_decides_is_refused_by_name(call, service, options, field):
    with pytest.raises(relet.Invalid) as refused:
        call(**options)
    assert (refused.value.detail["field"], service.seen) == (field, [])


def test_a_client_of_another_library_is_refused():
    with pytest.raises(relet.Invalid, match=r"client: .* is none of httpx2"):
        send(object(), EFFECT, "POST", "http://127.0.0.1/")


def test_without_httpx2_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(relet.Invalid, match=r"pip install 'relet\[http\]'"):
        send(object(), EFFECT, "POST", "http://127.0.0.1/")


# -- as effects --------------------------------------------------------------------------------------------------


@pytest.fixture
def order(app, style, service):
    """A handler, of either style, with one effect that makes an order."""

    def order(contract=None, **knobs):
        options = {"contract": contract, "timeout": "5s"}

        def place(payload, effect):
            with httpx2.Client(trust_env=False) as client:
                return send(client, effect, "POST", f"{service.url}/orders", json=payload)

        async def place_awaited(payload, effect):
            async with httpx2.AsyncClient(trust_env=False) as client:
                return await send(client, effect, "POST", f"{service.url}/orders", json=payload)

        def blocking(run):
            return run.effect("order", {"n": 1}, place, **options)

        async def awaiting(run):
            return await run.effect("order", {"n": 1}, place_awaited, **options)

        return app.task("work", **knobs)(awaiting if style == "async def" else blocking)

    return order


def test_a_keyed_call_whose_answer_breaks_off_is_repeated_with_the_same_key(db, order, settle, service):
    service.answers = [cut_off, (200, {"id": 7})]
    assert settle(order(relet.Keyed(retention="24h")).submit(db)).result == {"id": 7}
    assert len({headers["Idempotency-Key"] for _, headers, _ in service.seen}) == 1
    assert len(service.seen) == 2


def test_an_opaque_call_whose_answer_breaks_off_waits_for_a_person(db, order, settle, service):
    service.answers = [cut_off]
    task = order().submit(db)
    assert settle(task).state == "waiting"
    db.reconcile(db.effects()[0].id, "applied", {"id": 7})
    assert (settle(task).result, len(service.seen)) == ({"id": 7}, 1)


def test_a_refusal_is_tried_again_by_the_next_attempt_and_ends_the_task_with_what_was_said(
    db, order, settle, service
):
    service.answers = [(422, {"error": "no such item"})]
    failed = settle(order(retry=relet.RetryPolicy(max_attempts=2)).submit(db))
    assert (failed.state, len(service.seen), db.effects()[0].state) == ("failed", 2, "failed")
    assert "422" in failed.error
    assert "no such item" in failed.error


def test_a_refusal_of_a_repeated_call_does_not_hide_that_the_first_may_have_been_done(db, order, settle, service):
    service.answers = [hang_up, (401, {"error": "the token has run out"})]
    failed = settle(order(relet.Keyed(retention="24h"), retry=relet.RetryPolicy(max_attempts=2)).submit(db))
    assert (failed.state, db.effects()[0].state) == ("failed", "unknown")
    assert "an earlier one may have been" in db.effects()[0].error


def test_a_permanent_end_is_for_the_handler_to_say(db, app, settle, service):
    service.answers = [(422, {"error": "no such item"})]

    @app.task("work")
    def work(run):
        def place(payload, effect):
            with httpx2.Client(trust_env=False) as client:
                return send(client, effect, "POST", f"{service.url}/orders", json=payload)

        try:
            return run.effect("order", {"n": 1}, place)
        except relet.NotApplied as refused:
            raise relet.Permanent(str(refused), code="REFUSED") from refused

    failed = settle(work.submit(db))
    assert (failed.state, failed.code, len(service.seen)) == ("failed", "REFUSED", 1)
