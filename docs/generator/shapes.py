"""Structs as tables of fields: type, unit, default, meaning (written at the field, or in meanings.py)."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import typing
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Final

import msgspec

from docs.generator.markdown import code, table
from docs.generator.meanings import MEANINGS
from relet.core.catalog import BY_REQUEST
from relet.core.errors import Error

WORDS: Final[dict[Any, str]] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Any: "JSON value",
    msgspec.Raw: "JSON value",
    datetime: "time, UTC",
    type(None): "null",
    Error: "error",
}


DURATIONS: Final = {"RetryPolicy.base", "RetryPolicy.cap"}
"""Fields for any value that is a duration: seconds, a timedelta, or text."""


def word(kind: Any) -> str:
    """A type in words, as a caller who knows JSON reads it."""
    if kind in WORDS:
        return WORDS[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(word(one) for one in arguments if one is not msgspec.UnsetType)
    if origin is list:
        inner = word(arguments[0])
        return f"list of ({inner})" if " or " in inner else f"list of {inner}"
    if origin is tuple:
        return f"pair of {' and '.join(word(one) for one in arguments)}"
    if origin is dict:
        return f"mapping of {word(arguments[0])} to {word(arguments[1])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " · ".join(code(one.value) for one in kind)
    if kind in BY_REQUEST:
        return f"[{kind.__name__}](#{BY_REQUEST[kind].name})"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return f"[{kind.__name__}](#{kind.__name__.lower()}-fields)"
    raise LookupError(f"no word for the type {kind!r}")


def unit(name: str) -> str:
    """The unit that a field's name ends with."""
    if name.endswith("_wall_ms"):
        return "ms since 1970, UTC"
    return "ms" if name.endswith("_ms") else ""


def fields_of(struct: type[msgspec.Struct]) -> str:
    """The fields of a struct as a table."""
    hints, notes, rows = typing.get_type_hints(struct), notes_in(struct), []
    for field in msgspec.structs.fields(struct):
        meaning = notes.get(field.name) or _meaning(f"{struct.__name__}.{field.name}", field.name)
        shown = "duration" if f"{struct.__name__}.{field.name}" in DURATIONS else word(hints[field.name])
        rows.append([code(field.name), shown, unit(field.name), _default(field), meaning])
    if not rows:
        return "It has no fields."
    heads = ["field", "type", "unit", "default", "meaning"]
    keep = [n for n in range(len(heads)) if n != 2 or any(row[2] for row in rows)]  # noqa: PLR2004 - the unit
    return table([heads[n] for n in keep], [[row[n] for n in keep] for row in rows])


def _meaning(full: str, name: str) -> str:
    if found := MEANINGS.get(full) or MEANINGS.get(name):
        return found
    raise LookupError(f"{full} has no text under it in its source, and no line in docs/generator/meanings.py")


def _default(field: Any) -> str:
    if field.required:
        return ""
    if field.default is msgspec.UNSET:
        return "left out"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return code(msgspec.json.encode(value).decode())


@cache
def notes_in(kind: type) -> dict[str, str]:
    """What stands as text under the fields of a class, as its source has it, and its parents' sources theirs."""
    notes: dict[str, str] = {}
    for parent in reversed(kind.__mro__[1:]):
        if issubclass(parent, msgspec.Struct) and parent.__module__.startswith("relet."):
            notes |= notes_in(parent)
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef), "asked of classes"
    for before, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name)
            and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        ):  # fmt: skip
            notes[before.target.id] = inspect.cleandoc(str(after.value.value))
    return notes


def structs_in(kind: Any) -> list[type[msgspec.Struct]]:
    """All structs that a type speaks of, itself first, each once."""
    found: dict[type[msgspec.Struct], None] = {}

    def look(one: Any) -> None:
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and one not in found:
            found[one] = None
            for hint in typing.get_type_hints(one).values():
                look(hint)
        for inner in typing.get_args(one):
            look(inner)

    look(kind)
    return list(found)
