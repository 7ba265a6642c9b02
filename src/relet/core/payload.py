"""JSON values in and out: canonical text, so that equal content is equal bytes on every engine."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from relet.core import limits
from relet.core.border import invalid, shown
from relet.core.errors import DAMAGED, Invalid, Unavailable

_UNCLEAN = re.compile("[\x00\ud800-\udfff]")
DIGEST_CHARS: Final = 32
_ESCAPED: Final = 6
"""Bytes that one may be written as: \\u0041 is A."""
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
_ENCODER = msgspec.json.Encoder(order="sorted")
_REFUSED: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bytes, bytearray, memoryview), "is bytes, which JSON has no form for; pass text, or the address of a file"),
    ((set, frozenset), "is a set, whose order is not fixed; pass a sorted list"),
    ((type,), "is a class; pass an instance, or its name"),
)
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def encode(field: str, value: Any) -> str:
    """As `encoded`, as text."""
    return encoded(field, value).decode()


def encoded(field: str, value: Any) -> bytes:
    """A value as canonical JSON.

    Takes what JSON has, and dataclasses, msgspec structs, pydantic models, enums, datetimes and UUIDs. Raises
    `Invalid` with the path of what does not fit: NaN, NUL, lone surrogates, bytes, keys that are not text,
    whole numbers beyond 64 bits, or more than the payload limit.
    """
    text = _ENCODER.encode(value if _is_plain(value, 0) else _plain(field, value, 0))
    if (size := len(text)) > limits.PAYLOAD_BYTES_MAX:
        raise _too_large(field, size)
    return text


def _too_large(field: str, size: int) -> Invalid:
    return invalid(
        field,
        f"has {size} bytes as JSON, the limit is {limits.PAYLOAD_BYTES_MAX}; "
        "attach the bytes (run.attach, lease.attach) or keep them elsewhere, and pass their address",
    )


Maybe = msgspec.Raw | msgspec.UnsetType
"""JSON that need not be there. Absent on the wire, where null is a value like any other."""


def maybe_raw(text: str | None) -> Maybe:
    """Kept text as it goes out; `UNSET` for None."""
    return msgspec.UNSET if text is None else msgspec.Raw(text.encode())


def maybe_text(encoded: Maybe) -> str | None:
    """What came in as text to be kept; None for `UNSET`."""
    return None if isinstance(encoded, msgspec.UnsetType) else bytes(encoded).decode()


FILED: Final = '{"relet:artifact":"'
"""How the canonical text begins that stands in a row for a value kept as a file."""
ADDRESS: Final = re.compile(rb'\{"relet:artifact":"([0-9a-f]{64})","size":(\d+)\}')
"""All of that text: which file, and how long."""
_FILED_BYTES: Final = FILED.encode()


def is_filed(encoded: bytes | msgspec.Raw) -> bool:
    """Does a file hold the value, and the text its address alone."""
    return bytes(encoded).startswith(_FILED_BYTES)


def taken_mark(field: str) -> Invalid:
    """The refusal of a value that looks like the address of a file and is none."""
    return invalid(field, 'has the key "relet:artifact", which stands for a kept file; name it otherwise')


def canonical(field: str, given: msgspec.Raw) -> msgspec.Raw:
    """JSON that somebody else wrote, as `encoded` writes it; the address of a kept file is let through."""
    if (size := memoryview(given).nbytes) > _ESCAPED * limits.PAYLOAD_BYTES_MAX:
        raise _too_large(field, size)  # before it is looked through
    text = encoded(field, parsed(field, given))
    if is_filed(text) and not ADDRESS.fullmatch(text):
        raise taken_mark(field)
    return msgspec.Raw(text)


def decode(text: str | bytes | msgspec.Raw) -> Any:
    """The value in canonical JSON text, as relet has written it. Raises `Unavailable` for what is none any more."""
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise Unavailable(
            "a stored value is no JSON any more: it is damaged, or was written by hand; nothing was done. See where "
            "→ relet verify; then restore a backup, or mend the row",
            code=DAMAGED,
        ) from wrong


def digest(*parts: str | None) -> str:
    """A fingerprint of texts, unambiguous about where each ends; one short text is its own."""
    if len(parts) == 1 and parts[0] is not None and len(parts[0]) < DIGEST_CHARS:
        return f"+{parts[0]}"
    joined = "\x00".join("-" if part is None else f"+{part}" for part in parts)
    return hashlib.sha256(joined.encode()).hexdigest()[:DIGEST_CHARS]


def _is_plain(value: Any, depth: int) -> bool:
    """Is it what `_plain` would answer, JSON through and through: most values are, and need no path to be told by."""
    kind = type(value)
    if value is None or kind is bool:
        return True
    if kind is str:
        return _UNCLEAN.search(value) is None
    if kind is int:
        return bool(_INT_MIN <= value <= _INT_MAX)
    if kind is float:
        return math.isfinite(value)
    if depth >= limits.PAYLOAD_DEPTH_MAX:
        return False
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or _UNCLEAN.search(key) is not None or not _is_plain(item, depth + 1):
                return False
        return True
    return kind is list and all(_is_plain(item, depth + 1) for item in value)


def _plain(path: str, value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        if bad := _UNCLEAN.search(value):
            raise invalid(path, f"holds the character {bad[0]!a}, which no store keeps; remove or escape it")
        return value
    if kind is int:
        if not _INT_MIN <= value <= _INT_MAX:
            raise invalid(path, f"{shown(value)} is beyond 64 bits; pass it as text")
        return value
    if kind is float:
        if not math.isfinite(value):
            raise invalid(path, f"{value} has no JSON form; pass None or text")
        return value
    if depth >= limits.PAYLOAD_DEPTH_MAX:
        raise invalid(path, f"is nested deeper than {limits.PAYLOAD_DEPTH_MAX} levels; flatten it")
    if kind is dict:
        return {_key(path, key): _plain(f"{path}.{key}", item, depth + 1) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_plain(f"{path}[{n}]", item, depth + 1) for n, item in enumerate(value)]
    return _foreign(path, value, depth)


def _key(path: str, key: Any) -> str:
    if not isinstance(key, str):
        raise invalid(path, f"has the key {shown(key)}, which is not text; JSON keys are text")
    if bad := _UNCLEAN.search(key):
        raise invalid(path, f"has a key with the character {bad[0]!a}, which no store keeps; remove it")
    return key


def _foreign(path: str, value: Any, depth: int) -> Any:
    for kinds, problem in _REFUSED:
        if isinstance(value, kinds):
            raise invalid(path, problem)
    if isinstance(value, msgspec.Raw):
        return _plain(path, parsed(path, value), depth)
    if isinstance(value, (str, int, float)):  # enums and other subclasses
        return _plain(path, _base(value), depth)
    if isinstance(value, Mapping):
        return _plain(path, dict(value), depth)
    if isinstance(value, (list, tuple)):
        return _plain(path, list(value), depth)
    if hasattr(value, "model_dump"):
        return _plain(path, value.model_dump(mode="json"), depth + 1)
    if hasattr(value, "__dataclass_fields__"):
        from dataclasses import fields  # costly to import, and loaded already by whoever made the value

        names = (item.name for item in fields(value))
        return _plain(path, {item: getattr(value, item) for item in names}, depth)
    if isinstance(value, msgspec.Struct):
        return _plain(path, msgspec.structs.asdict(value), depth)
    try:
        plain = msgspec.to_builtins(value)
    except (TypeError, ValueError, msgspec.MsgspecError):
        plain = value
    if type(plain) in (str, int, float, bool, list, dict):
        return _plain(path, plain, depth)
    raise _no_form(path, value)


def parsed(path: str, value: msgspec.Raw) -> Any:
    """The value in JSON text, whoever wrote it. Raises `Invalid`."""
    try:
        return _DECODER.decode(value)
    except (msgspec.DecodeError, RecursionError) as wrong:
        raise invalid(
            path, f"is raw JSON that does not parse ({wrong}); pass valid JSON, or the value itself"
        ) from wrong


def _base(value: str | float) -> str | int | float:
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value.value) if hasattr(value, "value") else kind(value)
    raise AssertionError(value)  # pragma: no cover - the caller tested the kinds


def _no_form(path: str, value: Any) -> Invalid:
    return invalid(
        path,
        f"{shown(value)} of type {type(value).__name__} has no JSON form; pass text, numbers, lists or mappings",
    )
