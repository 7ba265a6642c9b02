"""What the types of requests say of themselves: their parts, what may be left out, and the words for what fits."""

from __future__ import annotations

import types
from enum import Enum
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

ABSENT: Final = (type(None), msgspec.UnsetType)
_WORDS: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "text", msgspec.Raw: "JSON"}


class Shape(NamedTuple):
    """One type, taken apart."""

    kind: Any
    """A class: a struct, an enum, `list`, `dict`, `tuple`, or that of a plain value."""
    parts: tuple[Any, ...]
    """The types of what is in a list, a tuple or a mapping."""
    meta: msgspec.Meta | None
    """What else must hold of it."""

    @property
    def words(self) -> str:
        """What fits, as in "give …" and "is not …"."""
        if self.meta is not None and self.meta.description is not None:
            return self.meta.description
        if issubclass(self.kind, Enum):
            return f"one of {', '.join(one.value for one in self.kind)}"
        if self.kind is tuple:
            return f"a list of {len(self.parts)} items"
        return _WORDS.get(self.kind) or ("a list" if self.kind is list else "an object")


def shape(hint: Any) -> Shape:
    """A type without what stands for its absence, and with what its annotation says."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (arm for arm in get_args(hint) if arm not in ABSENT)
    meta = None
    if get_origin(hint) is Annotated:
        hint, meta = get_args(hint)
    return Shape(get_origin(hint) or hint, get_args(hint), meta)


def fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The types of a struct's fields, with what their annotations say."""
    return get_type_hints(struct, include_extras=True)


def joined(path: str, name: str) -> str:
    """The path of a field of what is at a path."""
    return f"{path}.{name}" if path else name


def names(struct: type[msgspec.Struct]) -> str:
    """The fields that there are, for who named another."""
    return ", ".join(struct.__struct_fields__) or "none"
