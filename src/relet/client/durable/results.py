"""A function's result as JSON and back, to the type that its caller or its annotation names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, get_type_hints
from weakref import WeakKeyDictionary

import msgspec

from relet.core import payload
from relet.core.border import invalid, shown
from relet.core.errors import Invalid


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


def converted(value: Any, kind: Any, what: str) -> Any:
    """A JSON value as a type. Raises `Invalid` naming what does not fit."""
    if kind is Any:
        return value
    try:
        if hasattr(kind, "model_validate"):
            return kind.model_validate(value)
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, ValueError) as wrong:
        raise invalid("returns", f"{what} does not fit {shown(kind)}: {wrong}") from wrong
    except TypeError:
        return value  # a type of the user's own, which has no JSON form to check against


def fingerprint(args: Sequence[Any]) -> str | None:
    """A digest of arguments; those without a JSON form stay out of it. None when none has one."""
    said: list[str | None] = []
    for value in args:
        try:
            said.append(payload.encode("argument", value))
        except Invalid:
            said.append(None)
    return payload.digest(*said) if any(said) or not args else None
