"""The catalog as parts: a table of all operations, one part for each, and the structs that they speak of."""

from __future__ import annotations

import inspect

from docs.generator.markdown import code, table
from docs.generator.shapes import fields_of, structs_in, word
from relet.core.catalog import OPERATIONS
from relet.core.operation import Operation


def parts() -> dict[str, str]:
    """Everything that the page of operations holds."""
    made = {f"operation {one.name}": _operation(one) for one in OPERATIONS}
    rows = [
        [f"[`{one.name}`](#{one.name})", one.summary, _yes(one.writes), _yes(one.writes and one.durable),
         _yes(one.replay_safe), _yes(one.for_agents)]
        for one in OPERATIONS
    ]  # fmt: skip
    heads = ["operation", "what it does", "writes", "durable", "repeat-safe", "for agents"]
    made["operations"] = table(heads, rows)
    made["structs"] = _structs()
    return made


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def _operation(one: Operation) -> str:
    facts = "Reads only."
    if one.writes and one.durable:
        facts = "Writes, and is on disk before it is acknowledged."
    elif one.writes:
        facts = "Writes, and may be forgotten by a crash."
    again = "May be" if one.replay_safe else "Must not blindly be"
    request = inspect.getdoc(one.request)
    return "\n\n".join(
        [
            f"{inspect.getdoc(one.rule)}",
            f"{facts} {again} sent again when its outcome is unknown.",
            f"Request {code(one.request.__name__)}: {request}",
            fields_of(one.request),
            f"Answer: {word(one.answer)}.",
        ]
    )


def _structs() -> str:
    requests = {one.request for one in OPERATIONS}
    found = {struct: None for one in OPERATIONS for kind in (one.request, one.answer) for struct in structs_in(kind)}
    kept = sorted((struct for struct in found if struct not in requests), key=lambda one: one.__name__)
    return "\n\n".join(f"### {one.__name__} fields\n\n{inspect.getdoc(one)}\n\n{fields_of(one)}" for one in kept)
