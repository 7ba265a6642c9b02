"""Answers as they go out: JSON, or a problem document."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from relet.core.errors import Error
from relet.core.problem import AFTER_S, MEDIA_TYPE, TOO_MANY, problem_of
from relet.core.wire import encode

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
RETRY_S: Final = 1
HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def answer(value: object) -> Response:
    """What was asked for."""
    return Response(encode(value), media_type=JSON, headers=HEADERS)


def problem(error: Error) -> Response:
    """An error, with the status that belongs to it."""
    told = problem_of(error)
    headers = dict(HEADERS)
    if error.retryable or error.code == TOO_MANY:
        headers["Retry-After"] = str(error.detail.get(AFTER_S, RETRY_S))
    if told.status == 401:  # noqa: PLR2004 - as RFC 9110 asks for it there
        headers["WWW-Authenticate"] = 'Bearer realm="relet"'
    return Response(encode(told), status_code=told.status, media_type=MEDIA_TYPE, headers=headers)
