"""The public names of `relet` and `relet.testing` as parts: signature and docstring of each, its methods in order."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from importlib import import_module
from typing import Any, Final

import msgspec

import relet
import relet.testing
from docs.generator.markdown import code, table
from docs.generator.shapes import fields_of
from relet.client.durable.facts import RunTask
from relet.client.views import Bulk, Collected
from relet.core.errors import Error
from relet.testing import plugin
from relet.worker.app import Handler
from relet.worker.worker import Worker

FENCES: Final = (
    ("SqliteFence", "sqlite"), ("PostgresFence", "postgres"), ("FileFence", "files"), ("ObjectFence", "objects"),
    ("ObjectTarget", "objects"), ("Published", "objects"), ("RedisFence", "redis"), ("RedisTarget", "redis"),
    ("GitFence", "git"), ("GitTarget", "git"), ("FenceMiddleware", "http"), ("HttpFence", "http"),
    ("HttpTarget", "http"), ("fence_headers", "http"),
)  # fmt: skip
"""The public names of `relet.fences`, and the targets that their blocks get."""
AS: Final = re.compile(r"As `\w+\.\w+`")
ON_OTHER_PAGES: Final = frozenset(
    {
        "Artifact", "Checkpoint", "Decision", "Effect", "Event", "Rejection", "Step", "Task", "Wait", "LeaseStopped",
        "NotApplied", "Parked", "Permanent", "Temporary", "__version__",
    }
)  # fmt: skip
"""Structs are in the page of operations, errors in that of errors; the version is a word in the text."""
CONTRACTS: Final = ("Conditional", "Keyed", "Natural", "Opaque", "Queryable")
"""Classes that callers make with arguments."""
INNER: Final = {
    "Client": {"claim_once", "holder_of", "leases_of", "settled", "settled_all"},
    "AsyncClient": {"hop", "threads"},
    "Lease": {"ends", "fetched", "filed", "keep_quietly", "parks", "seen", "send", "submit"},
    "Run": {"check_token", "must_stop", "require", "stop"},
    "AsyncRun": {"bind", "check_token", "must_stop", "require", "stop", "unbind"},
    **{name: {"declared"} for name in CONTRACTS},
    "LogContext": {"filter"},
    "Redacting": {"filter"},
    "fences.GitFence": {"prepared"},
    "testing.Clock": {"fast_ms", "mono_ms", "on_move", "wait", "wall_ms"},
}
"""Methods that rooms of relet use among themselves; the surface does without them."""


def parts() -> dict[str, str]:
    """One part for each public name that is not told elsewhere."""
    made = {f"api {name}": _told(name, value) for name, value in public().items()}
    made["api fences"] = "\n\n".join(
        _fence(name, getattr(import_module(f"relet.fences.{room}"), name)) for name, room in FENCES
    )
    made["api testing"] = "\n\n".join(
        [
            f"### testing.store\n\n{_told('testing.store', relet.testing.store)}",
            f"### testing.Clock\n\n{_told('testing.Clock', relet.testing.Clock)}",
            f"### testing.crash_test\n\n{_told('testing.crash_test', relet.testing.crash_test)}",
            "### Fixtures",
            table(
                ["pytest fixture", "what it is"],
                [[code(name), _doc(inspect.unwrap(getattr(plugin, name)))] for name in ("relet_db", "relet_clock")],
            ),
        ]
    )
    return made


def public() -> dict[str, Any]:
    """What `from relet import *` gives, and the classes that its answers are of."""
    named = {name: getattr(relet, name) for name in relet.__all__ if name not in ON_OTHER_PAGES}
    kept = {name: one for name, one in named.items() if not (inspect.isclass(one) and issubclass(one, Error))}
    return {**kept, "Handler": Handler, "Worker": Worker, "RunTask": RunTask, "Bulk": Bulk, "Collected": Collected}


def _fence(name: str, value: Any) -> str:
    head, called = f"### fences.{name}", f"relet.fences.{name}"
    if not isinstance(value, type):
        return f"{head}\n\n{_signature(called, value)}\n\n{_doc(value)}"
    made_by_you = not name.endswith(("Target", "Published"))
    call = f"{_signature(called, value.__init__, bound=True).replace(' -> None', '')}\n\n" if made_by_you else ""
    return f"{head}\n\n{call}{_told(f'fences.{name}', value)}"


def _told(name: str, value: Any) -> str:
    if isinstance(value, type) and issubclass(value, Enum):
        return f"{_doc(value)}\n\nValues: {' · '.join(code(one.value) for one in value)}."
    if isinstance(value, type) and issubclass(value, msgspec.Struct):
        facts = {key: one for key, one in vars(value).items() if isinstance(one, property)}
        return "\n\n".join([_doc(value), fields_of(value), *([_facts(facts)] if facts else [])])
    if isinstance(value, type):
        return _class(name, value)
    return f"{_signature(f'relet.{name}', value)}\n\n{_doc(value)}"


def _class(name: str, kind: type) -> str:
    members = {
        key: found for key in _in_order(kind) if (found := inspect.getattr_static(kind, key)) is not None
        and not key.startswith("_") and key not in INNER.get(name, ())
    }  # fmt: skip
    facts = {key: one for key, one in members.items() if isinstance(one, property)}
    verbs = {key: one for key, one in members.items() if inspect.isfunction(one)}
    same = [key for key, one in verbs.items() if AS.match(_doc(one))]
    told = [_doc(kind)]
    if name in CONTRACTS:
        told.insert(0, _signature(f"relet.{name}", kind))
    if same:
        told.append("The same verbs, awaited: " + " · ".join(code(key) for key in same) + ".")
    if (attributes := list(_attributes(kind))) or facts:
        told.append(_facts(facts, attributes))
    for key, one in verbs.items():
        if key not in same:
            told.append(f"#### {name}.{key}\n\n{_signature(key, one, bound=True)}\n\n{_doc(one)}")
    return "\n\n".join(told)


def _facts(properties: dict[str, property], attributes: Iterable[tuple[str, str, str]] = ()) -> str:
    rows = [[code(key), _typed(_kind(one.fget)), _doc(one)] for key, one in properties.items()]
    rows += [[code(key), _typed(hint), text] for key, hint, text in attributes]
    return table(["fact", "type", "what it is"], rows)


def _attributes(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and text of what `__init__` sets and explains with a string under it."""
    for one in kind.__mro__:
        if one.__module__.startswith("relet.") and "__init__" in vars(one):
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(one.__init__))).body
            for before, after in itertools.pairwise(body.body):
                target = getattr(before, "target", None) or next(iter(getattr(before, "targets", [])), None)
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(after, ast.Expr)
                    and not target.attr.startswith("_")
                ):
                    hint = ast.unparse(before.annotation) if isinstance(before, ast.AnnAssign) else ""
                    yield target.attr, hint, inspect.cleandoc(str(after.value.value))


def _typed(hint: str) -> str:
    return code(hint) if hint else ""


def _in_order(kind: type) -> list[str]:
    """Names of a class as its source has them, those of its own bases first."""
    names: dict[str, None] = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith("relet."):
            names |= dict.fromkeys(vars(one))
    return list(names)


def _signature(name: str, function: Callable[..., Any], *, bound: bool = False) -> str:
    """A call as it is written; `py` and not `python`, since it is no code to run."""
    target = inspect.unwrap(function)
    shown: list[str] = []
    parameters = list(inspect.signature(target).parameters.values())[bound:]
    for number, one in enumerate(parameters):
        if one.kind is one.KEYWORD_ONLY and not any(
            before.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL) for before in parameters[:number]
        ):
            shown.append("*")
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        text = f"{stars}{one.name}"
        hint = _word(one.annotation)
        if hint and not stars:
            text += f": {hint}"
        if one.default is not one.empty:
            default = json.dumps(one.default) if isinstance(one.default, str) else repr(one.default)
            text += f" = {default}" if hint and not stars else f"={default}"
        shown.append(text)
        if one.kind is one.POSITIONAL_ONLY and (
            number + 1 == len(parameters) or parameters[number + 1].kind is not one.POSITIONAL_ONLY
        ):
            shown.append("/")
    answer = f" -> {_kind(function)}" if _kind(function) else ""
    wait = "await " if inspect.iscoroutinefunction(target) else ""
    line = f"{wait}{name}({', '.join(shown)}){answer}"
    if len(line) > 100:  # noqa: PLR2004 - what fits the page
        line = f"{wait}{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){answer}"
    return f"```py\n{line}\n```"


def _kind(function: Any) -> str:
    if isinstance(function, type):
        return ""
    return _word(inspect.signature(inspect.unwrap(function)).return_annotation)


def _word(annotation: Any) -> str:
    """An annotation as its source has it; nothing where any value goes, since the text says which."""
    if annotation is inspect.Parameter.empty or annotation in ("Any", Any):
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _doc(value: Any) -> str:
    text = inspect.getdoc(value.fget if isinstance(value, property) else value)
    if not text:
        raise LookupError(f"{value!r} has no docstring, and it is public")
    return text
