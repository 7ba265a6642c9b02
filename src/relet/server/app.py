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
    operations = Operations(service, version, audit, still, uploads)
    streams, files = Streams(service, still), Files(service, uploads)
    upkeep = Upkeep(service)
    health = Health(service, upkeep)
    metrics = Metrics(service, health)

    async def openapi(_request: Request) -> Response:
        return answer(document())

    async def told(request: Request, error: Exception) -> Response:
        assert isinstance(error, Error), "registered for those alone"
        audit.refused(request, error)
        return problem(error)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        service.news.begin()
        upkeep.begin()
        yield
        service.news.stop()
        await upkeep.end()
        await audit.close()
        service.close()

    routes = [
        # First, as they are asked for most, and the router goes from one to the next.
        *(
            Route(f"{PREFIX}/{operation.name}", operations.endpoint(operation), methods=["POST"])
            for operation in OPERATIONS
        ),
        Route("/healthz", health.healthz, methods=["GET"]),
        Route("/readyz", health.readyz, methods=["GET"]),
        Route("/openapi.json", openapi, methods=["GET"]),
        Route("/metrics", metrics.scrape, methods=["GET"]),
        Route(f"{PREFIX}/whoami", operations.whoami, methods=["GET"]),
        Route(f"{PREFIX}/audit", audit.page, methods=["GET"]),
        Route(f"{PREFIX}/news", streams.news, methods=["GET"]),
        Route(f"{PREFIX}/changes/stream", streams.changes, methods=["GET"]),
        Route(f"{PREFIX}/artifacts/{{sha256}}", files.asked, methods=["GET", "HEAD", "PUT"]),
    ]
    app = Starlette(
        routes=routes, lifespan=lifespan,
        exception_handlers={Error: told, HTTPException: _no_route, Exception: _fault},
    )  # fmt: skip
    # A path is what it is: one with a slash more is none of ours, and nobody is sent elsewhere.
    app.router.redirect_slashes = False
    gated = Timed(Gate(traced(app, service), ring, hosts, audit.refused, rate), metrics.panel_of)
    return Behind(gated, proxies) if proxies else gated


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for those alone"
    where = operation_at(request.url.path)
    if error.status_code == NOT_ALLOWED:
        allowed = (error.headers or {})["Allow"]
        told = problem(Invalid(
            f"{where}: is not asked by {request.method}; use {allowed}", code=WRONG_METHOD, field="method"
        ))  # fmt: skip
        told.headers["Allow"] = allowed
        return told
    return problem(NotFound(f"{where}: there is no such path; the operations are listed by GET /openapi.json"))


async def _fault(_request: Request, _error: Exception) -> Response:
    """A bug of ours, which the log tells of; the one who asked learns nothing of how it looks inside."""
    return problem(OutcomeUnknown("the service met a fault; its log says which", code=FAULT))
