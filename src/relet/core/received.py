"""What a stranger has sent, as a request: as strict as the border is with a program that uses our own client."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import msgspec

from relet.core.backend import Request
from relet.core.border import invalid
from relet.core.misfit import BODY, misfit, unfit
from relet.core.operation import Operation
from relet.core.payload import canonical
from relet.core.shapes import Shape, fields, joined, shape

_PLAIN: Final = msgspec.json.Encoder()
_PLAIN_DECODER: Final = msgspec.json.Decoder()
_SPACES: Final = b" \t\r\n"
Walk = Callable[[str, Any], Any]
"""Looks through what was decoded, at a path: answers it, changed where it must be. Raises `Invalid`."""


def received(operation: Operation, body: bytes) -> Any:
    """The request in a body. Raises `Invalid`, whose message and `field` name the part that does not fit.

    Its JSON is canonical: what was written in another order, or with other spaces, is the same content.
    """
    try:
        ask = _walk_of(operation.request)("", _decoded(operation.request, body))
    except msgspec.MsgspecError as wrong:
        raise invalid(BODY, f"is no JSON ({wrong}); send one object, in UTF-8") from wrong
    except RecursionError:
        raise invalid(BODY, "is nested too deeply; flatten it") from None
    if not _is_plain(body) and (twice := _said_twice(body)) is not None:
        raise invalid(twice, "is said twice in one object, and only one can count; say it once")
    return ask


def _is_plain(body: bytes) -> bool:
    """Is it as it would be written, but for white space: then it says nothing twice, for that would be missing."""
    return _PLAIN.encode(_PLAIN_DECODER.decode(body)).translate(None, _SPACES) == body.translate(None, _SPACES)


def _decoded(request: type[msgspec.Struct], body: bytes) -> Any:
    try:
        return _decoder(request).decode(body)
    except msgspec.ValidationError as wrong:
        raise misfit("", request, msgspec.Raw(body)) from wrong


@cache
def _decoder(request: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(request)


@cache
def _walk_of(struct: type[msgspec.Struct]) -> Walk:
    """Through the fields in which there is something to look at, and what they are to each other."""
    walks = {name: walk for name, hint in fields(struct).items() if (walk := _walk(shape(hint)))}

    def through(path: str, value: Any) -> Any:
        changed = {}
        for name, walk in walks.items():
            if (inner := getattr(value, name)) is not None and inner is not msgspec.UNSET:
                changed[name] = walk(joined(path, name), inner)
        clean = msgspec.structs.replace(value, **changed) if changed else value
        if isinstance(clean, Request) and (odd := clean.at_odds()) is not None:
            raise invalid(joined(path, odd[0]), odd[1])
        return clean

    return through


def _walk(wanted: Shape) -> Walk | None:
    """None where decoding has seen to everything."""
    if wanted.kind is msgspec.Raw:
        return canonical
    if issubclass(wanted.kind, msgspec.Struct):
        return _walk_of(wanted.kind) if _has_more(wanted.kind) else None
    inner = [walk for part in wanted.parts if (walk := _walk(shape(part)))]
    more = {} if wanted.meta is None else wanted.meta.extra_json_schema or {}
    if "enum" in more:
        return lambda path, value: value if value in more["enum"] else _refuse(path, value, wanted)
    if "uniqueItems" in more:
        return lambda path, value: value if len(set(value)) == len(value) else _refuse(path, value, wanted)
    if not inner:
        return None
    (walk,) = inner
    assert wanted.kind is list, "JSON and structs stand in fields, or in lists"
    return lambda path, value: [walk(f"{path}[{n}]", item) for n, item in enumerate(value)]


def _has_more(struct: type[msgspec.Struct]) -> bool:
    return issubclass(struct, Request) or any(_walk(shape(hint)) for hint in fields(struct).values())


def _refuse(path: str, value: Any, wanted: Shape) -> Any:
    raise unfit(path, value, wanted)


def _said_twice(body: bytes) -> str | None:
    """The path of a field that stands twice in its object; a reader would silently take one of them."""
    found: list[tuple[dict[str, Any], str]] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
            found.append((made, name))
        return made

    tree = json.loads(body.decode(), object_pairs_hook=once, parse_int=str, parse_float=str)
    if not found:
        return None
    # The last one: those before it may be within what it has dropped.
    where, name = found[-1]
    return joined(next(path for path, inner in _objects("", tree) if inner is where), name)


def _objects(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield path, value
        for name, inner in value.items():
            yield from _objects(joined(path, name), inner)
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from _objects(f"{path}[{n}]", inner)
