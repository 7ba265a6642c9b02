"""JSON out for requests and answers, and answers in; what is asked comes in by received.py."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from relet.core.errors import FAMILIES, Error
from relet.core.operation import Operation


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error as plain data: its family, code, message and facts."""

    family: str
    code: str
    message: str
    retryable: bool
    detail: dict[str, Any]


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands where an answer was expected."""

    error: ErrorBody


def _plain(value: Any) -> Any:
    if isinstance(value, Error):
        return failure(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
_FAILURE = msgspec.json.Decoder(Failure)


def encode(value: Any) -> bytes:
    """A request, an answer or an error as JSON."""
    return _ENCODER.encode(value)


def decode_answer(operation: Operation, body: bytes) -> Any:
    """The answer to an operation; errors inside it come back as values, one in its place is told otherwise."""
    return _decode(body, operation.answer)


def failure(error: Error) -> Failure:
    """An error as plain data."""
    family = next(kind for kind in FAMILIES if isinstance(error, kind))
    body = ErrorBody(
        family=family.__name__, code=error.code, message=error.message, retryable=error.retryable,
        detail=error.detail,
    )  # fmt: skip
    return Failure(error=body)


def decode_error(body: bytes | msgspec.Raw) -> Error | None:
    """The error in a body; None when it holds anything else."""
    try:
        found = _FAILURE.decode(body).error
    except msgspec.ValidationError:
        return None
    # A family that only a newer relet knows is an error all the same.
    family = next((kind for kind in FAMILIES if kind.__name__ == found.family), Error)
    return family(found.message, code=found.code, **found.detail)


def _decode(body: bytes | msgspec.Raw, kind: Any) -> Any:
    """JSON as a type of answer, which may name errors in lists and in fields."""
    if kind is msgspec.Raw:
        return msgspec.Raw(bytes(body))
    if get_origin(kind) is UnionType and Error in get_args(kind):
        (wanted,) = (arm for arm in get_args(kind) if arm is not Error)
        return decode_error(body) or _decode(body, wanted)
    if get_origin(kind) is list:
        (item,) = get_args(kind)
        return [decode_error(raw) or _decode(raw, item) for raw in msgspec.json.decode(body, type=list[msgspec.Raw])]
    if fields := fields_with_errors(kind):
        raws = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        return kind(**{name: _decode(raws[name], hint) for name, hint in fields.items() if name in raws})
    return msgspec.json.decode(body, type=kind)


@cache
def fields_with_errors(kind: Any) -> dict[str, Any]:
    """The fields of a struct, when some of them may hold errors; else nothing."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return {}
    hints = get_type_hints(kind)
    return hints if any(_names_error(hint) for hint in hints.values()) else {}


def _names_error(hint: Any) -> bool:
    return hint is Error or any(_names_error(part) for part in get_args(hint))
