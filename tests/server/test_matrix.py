"""Every route there is, by every method, credential and way to speak: nothing passes that should not."""

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from relet.core.access import NEEDS, SCOPES_OF, Role, Scope
from relet.core.catalog import BY_NAME
from relet.core.wire import encode
from relet.server.gate import OPEN_PATHS
from relet.server.openapi import document
from tests.server.served import shake_hands
from tests.server.world import World

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND")
ANY_KEY = None
BESIDE = {
    ("/v1/whoami", "GET"): ANY_KEY, ("/openapi.json", "GET"): ANY_KEY, ("/v1/news", "GET"): ANY_KEY,
    ("/metrics", "GET"): Scope.READ, ("/v1/changes/stream", "GET"): NEEDS["changes"],
    ("/v1/audit", "GET"): Scope.AUDIT, ("/v1/artifacts/{sha256}", "PUT"): NEEDS["attach"],
    ("/v1/artifacts/{sha256}", "GET"): NEEDS["artifacts"],
}  # fmt: skip
"""What a route needs that is no operation. One that stands neither here nor in `NEEDS` fails every test here."""
DIGEST = "0" * 64
OPENS_NOTHING = ("none", "garbage", "other form", "expired", "revoked")
BOUND = "bound to another queue"
FOREIGN = "of another tenant"
ROLES = [str(role) for role in Role]


def routes_in(app):
    """The table of the running application, whatever it is wrapped in."""
    inside, seen = [app], set()
    while inside:
        layer = inside.pop()
        if isinstance(layer, Starlette):
            return layer.routes
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        inside += [cell.cell_contents for cell in getattr(layer, "__closure__", None) or ()]
        inside += [value for value in getattr(layer, "__dict__", {}).values() if callable(value)]
    raise LookupError("no table of routes")


def need(path, method):
    """The scope that a route needs; raises for one that nobody has thought of."""
    name = path.removeprefix("/v1/")
    if name in BY_NAME and method == "POST":
        return NEEDS[name]
    return BESIDE[path, "GET" if method == "HEAD" else method]


def table(app):
    return [(route.path, method) for route in routes_in(app) for method in sorted(route.methods)]


@pytest.fixture
def world(served):
    return World(served, "a")


@pytest.fixture
def bodies(world):
    """A request that would do something, for each operation."""
    found = {}
    for request in [*world.requests(), *world.sweeping()]:
        found.setdefault(next(name for name, one in BY_NAME.items() if one.request is type(request)), request)
    return {name: encode(request) for name, request in found.items()}


@pytest.fixture
def credentials(served):
    found = {**served.keys(), FOREIGN: served.key(tenant="b"), BOUND: served.key(queues=["elsewhere"])}
    found["none"], found["garbage"], found["other form"] = None, "lt_" + "0" * 12 + "_" + "x" * 43, "secret"
    found["revoked"], found["expired"] = served.key(), served.key(expires_ms=1_000)
    served.revoke(found["revoked"])
    served.clock.advance(2)
    return found


def target_of(path):
    return path.replace("{sha256}", DIGEST)


def ask(served, path, method, key, bodies, **options):
    return served.ask(method, target_of(path), key=key, body=bodies.get(path.removeprefix("/v1/"), b"{}"), **options)


def test_every_route_has_a_policy(served):
    routes = routes_in(served.app)
    assert all(type(route) is Route for route in routes), "no mount, no socket: only what the matrix knows how to ask"
    for path, method in table(served.app):
        if path not in OPEN_PATHS:
            need(path, method)


def test_every_route_stands_in_the_document(served):
    documented = {(path, method.upper()) for path, methods in document()["paths"].items() for method in methods}
    assert {(path, method) for path, method in table(served.app) if method != "HEAD"} <= documented


def test_a_route_without_a_policy_is_found():
    with pytest.raises(KeyError):
        need("/v1/debug", "GET")
    with pytest.raises(KeyError):
        need("/v1/whoami", "DELETE")


def test_every_operation_is_asked_with_a_request_that_would_do_something(bodies):
    assert set(bodies) == set(BY_NAME)


def test_what_needs_no_key_is_two_exact_paths_which_tell_nothing(served):
    assert {"/healthz", "/readyz"} == OPEN_PATHS
    for path in OPEN_PATHS:
        told = served.ask("GET", path).json
        assert (told.pop("ready"), told.pop("wrong")) == (True, [])
        assert all(age is None or isinstance(age, int) for age in told.values()), "when, and not a word of what"


@pytest.mark.parametrize("credential", OPENS_NOTHING)
def test_nothing_is_done_for_who_shows_no_good_key(served, world, bodies, credentials, credential):
    before = served.rows()
    for path in {path for path, _ in table(served.app)} - OPEN_PATHS:
        for method in METHODS:
            served.app_forgets_failures()
            reply = ask(served, path, method, credentials[credential], bodies)
            assert (reply.status, reply.is_problem) == (401, True), (path, method)
            assert reply.headers["www-authenticate"].startswith("Bearer")
    assert served.rows() == before


@pytest.mark.parametrize("role", ROLES)
def test_a_role_does_what_its_scopes_allow_and_nothing_else(served, world, bodies, credentials, role):
    """What is allowed is asked with an empty request: it gets past the door, and no further."""
    before, key, passed = served.rows(), credentials[role], 0
    for path, method in table(served.app):
        if path in OPEN_PATHS:
            continue
        needed = need(path, method)
        if needed is ANY_KEY or needed in SCOPES_OF[role]:
            passed += 1
            reply = served.ask(method, target_of(path), key=key, body=b"[]")
            assert reply.status in (200, 204, 400, 404), (path, method, reply)
            assert reply.status != 404 or path.endswith("{sha256}"), (path, method)
        else:
            reply = ask(served, path, method, key, bodies)
            assert (reply.status, method == "HEAD" or reply.is_problem) == (403, True), (path, method)
    assert passed
    assert served.rows() == before


@pytest.mark.parametrize("role", ROLES)
def test_a_method_that_a_route_has_not_is_refused(served, world, bodies, credentials, role):
    before, known = served.rows(), set(table(served.app))
    for path in {path for path, _ in known}:
        for method in METHODS:
            if (path, method) not in known:
                reply = ask(served, path, method, credentials[role], bodies)
                assert (reply.status, reply.code) == (405, "RELET-WRONG-METHOD"), (path, method)
    assert served.rows() == before


def test_a_key_that_is_bound_to_queues_reaches_nothing_of_another(served, world, bodies, credentials):
    before = served.rows()
    for name, body in bodies.items():
        reply = served.ask("POST", f"/v1/{name}", key=credentials[BOUND], body=body)
        if name == "sweep":  # it writes down what time has decided, and tells how much
            assert reply.status == 200
        else:
            assert (reply.status in (403, 404), reply.is_problem) == (True, True), (name, reply)
    reply = served.ask("GET", "/v1/changes/stream", key=credentials[BOUND])
    assert reply.status == 403
    assert served.rows() == before


@pytest.mark.parametrize("credential", [*OPENS_NOTHING, FOREIGN, BOUND, *ROLES])
def test_nobody_speaks_websocket_with_it(served, credentials, credential):
    for path in {path for path, _ in table(served.app)}:
        said = served.loop.run_until_complete(shake_hands(served.app, path, key=credentials[credential]))
        assert said == ["websocket.close"], path


@pytest.mark.parametrize("credential", OPENS_NOTHING)
def test_a_stream_of_events_is_not_begun_without_a_good_key(served, credentials, credential):
    for path in {path for path, _ in table(served.app)} - OPEN_PATHS:
        served.app_forgets_failures()
        reply = served.ask(
            "GET", target_of(path), key=credentials[credential], headers=[("Accept", "text/event-stream")]
        )
        assert (reply.status, reply.is_problem) == (401, True), path


@pytest.mark.parametrize("path", ["/v1/changes/stream", "/v1/news"])
def test_a_stream_is_begun_for_who_may_read(served, credentials, path):
    reply = served.ask("GET", path, key=credentials["viewer"])
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
