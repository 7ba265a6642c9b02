"""Which part of a body does not fit its request, and what would: for the refusal alone, once decoding has failed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from relet.core.border import invalid, shown
from relet.core.errors import Invalid
from relet.core.shapes import Shape, fields, joined, names, shape

BODY: Final = "body"
_SHOWN_CHARS: Final = 50
_JSON_WORDS: Final = {None: "null", True: "true", False: "false"}


def unfit(path: str, value: Any, wanted: Shape) -> Invalid:
    """The refusal of one value."""
    return invalid(path or BODY, f"{_told(value)} is not {wanted.words}")


def misfit(path: str, hint: Any, text: msgspec.Raw) -> Invalid:
    """The refusal of JSON that is no such thing. Raises `msgspec.DecodeError` for what is no JSON."""
    wanted = shape(hint)
    found = None
    if issubclass(wanted.kind, msgspec.Struct):
        found = _in_object(path, wanted.kind, text)
    elif wanted.kind in (list, tuple):
        found = _in_list(path, wanted, text)
    elif wanted.kind is dict:
        found = _in_mapping(path, wanted, text)
    return found or unfit(path, _value(text), wanted)


def _in_object(path: str, struct: type[msgspec.Struct], text: msgspec.Raw) -> Invalid | None:
    if (given := _opened(text, dict[str, msgspec.Raw])) is None:
        return None
    hints = fields(struct)
    for name in given:
        if name not in hints:
            return invalid(joined(path, _plain(name)), f"is no field that is known here; there are {names(struct)}")
    for field in msgspec.structs.fields(struct):
        if field.required and field.name not in given:
            return invalid(joined(path, field.name), f"is missing; give {shape(hints[field.name]).words}")
    found = _first((joined(path, name), hints[name], raw) for name, raw in given.items())
    # What was looked at is the last word of each field.
    return found or invalid(path or BODY, "says a field twice, and not each time what fits; say it once")


def _in_list(path: str, wanted: Shape, text: msgspec.Raw) -> Invalid | None:
    given = _opened(text, list[msgspec.Raw]) or []
    kinds = wanted.parts if wanted.kind is tuple else wanted.parts * len(given)
    return _first((f"{path}[{n}]", *pair) for n, pair in enumerate(zip(kinds, given, strict=False)))


def _in_mapping(path: str, wanted: Shape, text: msgspec.Raw) -> Invalid | None:
    given = _opened(text, dict[str, msgspec.Raw]) or {}
    key, item = wanted.parts
    return _first((path, key, msgspec.Raw(msgspec.json.encode(name))) for name in given) or _first(
        (f"{path}[{shown(name)}]", item, raw) for name, raw in given.items()
    )


def _first(parts: Iterable[tuple[str, Any, msgspec.Raw]]) -> Invalid | None:
    """The refusal of the first part that does not fit."""
    decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
    for path, hint, raw in parts:
        decoder = decoders.get(id(hint)) or decoders.setdefault(id(hint), msgspec.json.Decoder(hint))
        try:
            decoder.decode(raw)
        except msgspec.ValidationError:
            return misfit(path, hint, raw)
    return None


def _opened(text: msgspec.Raw, kind: Any) -> Any:
    """The parts of JSON, each as it stands there; None where it is of another kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        return None


def _value(text: msgspec.Raw) -> Any:
    """What JSON says; the text itself for a number that is none here."""
    try:
        return msgspec.json.decode(text)
    except msgspec.ValidationError:
        return text


def _told(value: Any) -> str:
    match value:
        case None | bool():
            return _JSON_WORDS[value]
        case list():
            return f"a list of {len(value)} items"
        case dict():
            return f"an object of {len(value)} fields"
        case str() if len(value) > _SHOWN_CHARS:
            return f"{shown(value)} ({len(value)} characters)"
        case msgspec.Raw():
            return f"a number of {len(bytes(value))} characters"
        case _:
            return shown(str(value) if isinstance(value, str) else value)


def _plain(name: str) -> str:
    """A stranger's name for a field, for a message."""
    return shown(name)[1:-1]
