"""A function's result as JSON and back, to the type that its caller or its annotation names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any, Final, get_args, get_type_hints
from weakref import WeakKeyDictionary

import msgspec

from relet.core import payload
from relet.core.border import invalid, shown
from relet.core.errors import Invalid

ADAPTERS_MAX = 64


def wanted(function: Callable[..., Any], returns: Any) -> Any:
    """The type to decode to: the one given, else the function's annotation, else any."""
    if returns is not None:
        return returns
    if not isinstance(function, FunctionType):
        return _annotated(function)
    if "return" not in function.__annotations__:
        return Any
    if function not in _ANNOTATED:
        _ANNOTATED[function] = _annotated(function)
    return _ANNOTATED[function]


_ANNOTATED: WeakKeyDictionary[FunctionType, Any] = WeakKeyDictionary()
"""Reading annotations costs as much as all the rest of a replayed step."""


def _annotated(function: Callable[..., Any]) -> Any:
    try:
        return get_type_hints(function, include_extras=True).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return Any  # an annotation that is out of reach here says nothing


MISFIT: Final = "RELET-MISFIT"


def refitted(value: Any, kind: Any, what: str) -> Any:
    """A value that was kept, as a type. Raises `Invalid`, code RELET-MISFIT: it will not fit another time either."""
    try:
        return converted(value, kind, what)
    except Invalid as wrong:
        raise Invalid(
            f"{wrong}. It was kept as it is; mend the annotation or returns=, or the receipt (relet reconcile), and "
            "requeue the task",
            code=MISFIT, field="returns",
        ) from wrong  # fmt: skip


def converted(value: Any, kind: Any, what: str) -> Any:
    """A JSON value as a type. Raises `Invalid` naming what does not fit."""
    if kind is Any:
        return value
    try:
        if hasattr(kind, "model_validate"):
            return kind.model_validate(value)
        if _holds_models(kind):
            return _adapter(kind).validate_python(value)
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, ValueError) as wrong:
        raise invalid("returns", f"{what} does not fit {shown(kind)}: {wrong}") from wrong
    except TypeError:
        return value  # a type of the user's own, which has no JSON form to check against


def _holds_models(kind: Any) -> bool:
    """Is it made of pydantic's models, such as a list of them; which msgspec does not know."""
    return any(hasattr(part, "model_validate") or _holds_models(part) for part in get_args(kind))


@lru_cache(maxsize=ADAPTERS_MAX)
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def fingerprint(args: Sequence[Any]) -> str | None:
    """A digest of arguments; those without a JSON form stay out of it. None when none has one."""
    texts = [_text(value) for value in args]
    return payload.digest(*texts) if any(texts) or not args else None


def _text(value: Any) -> str | None:
    try:
        return payload.encode("argument", value)
    except Invalid:
        # Too large to be kept, such as a page's text, or with a character that no store keeps.
        try:
            return hashlib.sha256(msgspec.json.encode(value)).hexdigest()
        except (TypeError, ValueError, msgspec.MsgspecError):
            return None
