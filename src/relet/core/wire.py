"""JSON in and out for requests and answers, strict: unknown fields of a request are refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from relet.core.catalog import Operation
from relet.core.errors import FAMILIES, Error, Invalid


def _plain(value: Any) -> Any:
    if isinstance(value, Error):
        return error_body(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)


def encode(value: Any) -> bytes:
    """A request, an answer or an error as JSON."""
    return _ENCODER.encode(value)


def decode_request(operation: Operation, body: bytes) -> Any:
    """The request in a body. Raises `Invalid` naming the field that does not fit."""
    try:
        return msgspec.json.decode(body, type=operation.request)
    except msgspec.MsgspecError as wrong:
        raise Invalid(f"{operation.name}: {wrong}", field=operation.name) from wrong


def decode_answer(operation: Operation, body: bytes) -> Any:
    """The answer in a body; errors inside lists come back as values, one at the top is raised."""
    parsed = msgspec.json.decode(body)
    if (error := _error(parsed)) is not None:
        raise error
    return _convert(parsed, operation.answer)


def error_body(error: Error) -> dict[str, Any]:
    """An error as plain data: its family, code, message and facts."""
    family = next(kind for kind in FAMILIES if isinstance(error, kind))
    return {
        "error": {
            "family": family.__name__, "code": error.code, "message": error.message,
            "retryable": error.retryable, "detail": error.detail,
        }
    }  # fmt: skip


def _error(parsed: Any) -> Error | None:
    if not isinstance(parsed, dict) or set(parsed) != {"error"}:
        return None
    body = parsed["error"]
    family = next(kind for kind in FAMILIES if kind.__name__ == body["family"])
    return family(body["message"], code=body["code"], **body["detail"])


@cache
def _item_type(kind: Any) -> Any:
    return getattr(kind, "__args__", (Any,))[0]


def _convert(parsed: Any, kind: Any) -> Any:
    """As msgspec.convert, with errors allowed in place of list items."""
    if isinstance(parsed, list):
        item = _item_type(kind)
        return [_error(value) or msgspec.convert(value, item) for value in parsed]
    return msgspec.convert(parsed, kind, dec_hook=_hook)


def _hook(wanted: Any, value: Any) -> Any:
    error = _error(value)
    if error is None:
        raise msgspec.ValidationError(f"expected an error, got {type(value).__name__}")
    assert issubclass(wanted, Error), "the only foreign type in answers"
    return error
