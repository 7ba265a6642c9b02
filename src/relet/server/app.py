"""The service as an ASGI application: one route for each operation of the catalog, and a few beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from relet.core.catalog import OPERATIONS
from relet.core.errors import Error, Invalid, NotFound, OutcomeUnknown
from relet.core.problem import FAULT, WRONG_METHOD
from relet.core.whoami import PREFIX
from relet.server.answers import answer, problem
from relet.server.audit import Audit, operation_at
from relet.server.files import Files
from relet.server.gate import Gate, KeyRing
from relet.server.health import Health
from relet.server.metrics import Metrics
from relet.server.openapi import document
from relet.server.proxies import Behind
from relet.server.queries import Endpoint, with_query
from relet.server.rates import PER_KEY, Rate
from relet.server.routes import Operations
from relet.server.service import Service
from relet.server.spans import traced
from relet.server.still import Still
from relet.server.streams import Streams
from relet.server.timed import Timed
from relet.server.upkeep import Upkeep
from relet.server.uploads import Uploads

NOT_ALLOWED: Final = 405


def application(
    service: Service, ring: KeyRing, *, hosts: Sequence[str], version: str, rate: Rate = PER_KEY,
    proxies: Sequence[str] = (),
) -> ASGIApp:  # fmt: skip
    """The service behind its gate; `hosts` are the names that it answers to, `proxies` whom it believes."""
    audit, still, uploads = Audit(service), Still(ring), Uploads(service)
    upkeep = Upkeep(service)
    health = Health(service, upkeep)
    metrics = Metrics(service, health)
    routes = [
        # First, as they are asked for most, and the router goes from one to the next.
        *_operations(Operations(service, version, audit, still, uploads)),
        *_looks(health, metrics),
        *_beside(audit, Streams(service, still), Files(service, uploads)),
    ]

    async def told(request: Request, error: Exception) -> Response:
        assert isinstance(error, Error), "registered for those alone"
        audit.refused(request, error)
        return problem(error)

    app = Starlette(
        routes=routes, lifespan=lambda _app: _lifespan(service, upkeep, audit),
        exception_handlers={Error: told, HTTPException: _no_route, Exception: _fault},
    )  # fmt: skip
    # A path is what it is: one with a slash more is none of ours, and nobody is sent elsewhere.
    app.router.redirect_slashes = False
    gated = Timed(Gate(traced(app, service), ring, hosts, audit.refused, rate), metrics.panel_of)
    return Behind(gated, proxies) if proxies else gated


def _route(path: str, endpoint: Endpoint, methods: list[str]) -> Route:
    return Route(path, with_query(path, endpoint), methods=methods)


def _operations(operations: Operations) -> list[Route]:
    return [
        *(
            _route(f"{PREFIX}/{operation.name}", operations.endpoint(operation), methods=["POST"])
            for operation in OPERATIONS
        ),
        _route(f"{PREFIX}/whoami", operations.whoami, methods=["GET"]),
    ]


def _looks(health: Health, metrics: Metrics) -> list[Route]:
    async def openapi(_request: Request) -> Response:
        return answer(document())

    return [
        _route("/healthz", health.healthz, methods=["GET"]),
        _route("/readyz", health.readyz, methods=["GET"]),
        _route("/openapi.json", openapi, methods=["GET"]),
        _route("/metrics", metrics.scrape, methods=["GET"]),
    ]


def _beside(audit: Audit, streams: Streams, files: Files) -> list[Route]:
    return [
        _route(f"{PREFIX}/audit", audit.page, methods=["GET"]),
        _route(f"{PREFIX}/news", streams.news, methods=["GET"]),
        _route(f"{PREFIX}/changes/stream", streams.changes, methods=["GET"]),
        _route(f"{PREFIX}/artifacts/{{sha256}}", files.asked, methods=["GET", "HEAD", "PUT"]),
    ]


@asynccontextmanager
async def _lifespan(service: Service, upkeep: Upkeep, audit: Audit) -> AsyncIterator[None]:
    service.news.begin()
    upkeep.begin()
    yield
    service.news.stop()
    await upkeep.end()
    await audit.close()
    service.close()


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for those alone"
    where = operation_at(request.url.path)
    if error.status_code == NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow")
        way = f"use {allowed}" if allowed else "GET /openapi.json says by which"
        told = problem(Invalid(
            f"{where}: is not asked by {request.method}; {way}", code=WRONG_METHOD, field="method"
        ))  # fmt: skip
        if allowed:
            told.headers["Allow"] = allowed
        return told
    return problem(NotFound(f"{where}: there is no such path; the operations are listed by GET /openapi.json"))


async def _fault(_request: Request, _error: Exception) -> Response:
    """A bug of ours, which the log tells of; the one who asked learns nothing of how it looks inside."""
    return problem(OutcomeUnknown("the service met a fault; its log says which", code=FAULT))
