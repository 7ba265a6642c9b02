"""Bodies as a program writes them that knows the schema alone: whole ones, and ones with a single wrong value."""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from relet.core.catalog import OPERATIONS
from relet.core.operation import Operation
from relet.core.shapes import Shape, fields, joined, shape

TEXTS = ("a", "#1", "a" * 64, f"artifact:{'a' * 64}")
BEYOND_64_BITS = 1 << 70


@dataclass(frozen=True)
class Leaf:
    """One place in a request where a value stands."""

    operation: Operation
    steps: tuple[Any, ...]
    """How it is reached in the JSON."""
    path: str
    """How a refusal names it."""
    shape: Shape

    def __str__(self):
        return f"{self.operation.name}:{self.path}"


def whole(wanted):
    """A value of a type in which every field is given."""
    match wanted.kind:
        case kind if issubclass(kind, msgspec.Struct):
            return {name: whole(shape(hint)) for name, hint in fields(kind).items()}
        case kind if issubclass(kind, Enum):
            return next(one.value for one in kind if allowed(wanted) is None or one in allowed(wanted))
        case kind if kind is list:
            return [whole(shape(wanted.parts[0]))]
        case kind if kind is tuple:
            return [whole(shape(part)) for part in wanted.parts]
        case kind if kind is dict:
            return {"k": whole(shape(wanted.parts[1]))}
        case kind if kind is str:
            return next(text for text in TEXTS if fits(wanted, text))
        case kind if kind in (int, float):
            return wanted.meta.ge
        case _:
            return True  # a flag, or any JSON


def allowed(wanted):
    return None if wanted.meta is None else (wanted.meta.extra_json_schema or {}).get("enum")


def fits(wanted, value):
    try:
        msgspec.convert(value, type=annotated(wanted))
    except msgspec.ValidationError:
        return False
    return True


def annotated(wanted):
    from typing import Annotated

    return Annotated[wanted.kind, wanted.meta]


def leaves(operation):
    """Every place of a request, those of structs and lists themselves among them."""

    def within(steps, path, wanted):
        if steps:
            yield Leaf(operation, steps, path, wanted)
        if issubclass(wanted.kind, msgspec.Struct):
            for name, hint in fields(wanted.kind).items():
                yield from within((*steps, name), joined(path, name), shape(hint))
        elif wanted.kind in (list, tuple):
            for n, part in enumerate(wanted.parts):
                yield from within((*steps, n), f"{path}[{n}]", shape(part))
        elif wanted.kind is dict:
            yield from within((*steps, "k"), f"{path}['k']", shape(wanted.parts[1]))

    return list(within((), "", shape(operation.request)))


LEAVES = [leaf for operation in OPERATIONS for leaf in leaves(operation)]


def body(leaf, value):
    """The whole request, with this value in the one place."""
    made = inner = whole(shape(leaf.operation.request))
    for step in leaf.steps[:-1]:
        inner = inner[step]
    inner[leaf.steps[-1]] = value
    return json.dumps(made).encode()


def wrong_values(wanted):
    """What does not fit: another type, and a value just beyond each bound."""
    meta = wanted.meta
    if wanted.kind is msgspec.Raw:
        return [BEYOND_64_BITS, "\x00", {"relet:artifact": "x"}]
    if wanted.kind is str:
        wrong = [7, [], "x" * (meta.max_length or 500) + "x", "a\x00"]
        return (
            wrong
            + [""] * bool(meta.min_length or meta.max_length is None)
            + ["a" * 63 + "\n"] * (not meta.max_length)
        )
    if wanted.kind in (int, float):
        return ["1", True, meta.ge - 1, meta.le + 1, BEYOND_64_BITS, *([1.5] if wanted.kind is int else [])]
    if wanted.kind is list:
        one = whole(shape(wanted.parts[0]))
        return [{}, "a", [one] * (meta.max_length + 1), *([[]] if meta.min_length else [])]
    if wanted.kind is dict:
        return [[], {f"k{n}": whole(shape(wanted.parts[1])) for n in range(meta.max_length + 1)}]
    if issubclass(wanted.kind, Enum):
        return ["no such", 7, *(one.value for one in wanted.kind if allowed(wanted) and one not in allowed(wanted))]
    return [7, "a"]
