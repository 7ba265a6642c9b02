"""What stands behind the `?` of a request: each name once, and none that the path does not know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from relet.core.border import invalid, shown
from relet.core.catalog import OPERATIONS
from relet.core.rules.claim import CLAIM
from relet.core.whoami import PREFIX
from relet.server.gate import OPEN_PATHS
from relet.server.openapi import WAIT, WAYS

Endpoint = Callable[[Request], Awaitable[Response]]
KNOWN: Final[dict[str, frozenset[str]]] = {
    **{f"{PREFIX}/{one.name}": frozenset({WAIT.name} if one is CLAIM else ()) for one in OPERATIONS},
    **{way.path: frozenset(one.name for one in way.given if one.place == "query") for way in WAYS},
}
"""Of each path: all that its query may name."""


def with_query(path: str, endpoint: Endpoint) -> Endpoint:
    """The endpoint of a path, which is not asked with a query that it would not heed."""
    if path in OPEN_PATHS:
        return endpoint  # a probe may say what it likes, and is answered
    known = KNOWN[path]

    async def asked(request: Request) -> Response:
        if request.scope["query_string"]:
            _check(request, known)
        return await endpoint(request)

    return asked


def _check(request: Request, known: frozenset[str]) -> None:
    seen = set()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            way = f"it knows {', '.join(sorted(known))}" if known else "it knows none"
            raise invalid("query", f"{shown(name)} is no parameter of this path; {way}")
        if name in seen:
            raise invalid(name, "is given twice; give it once")
        seen.add(name)
