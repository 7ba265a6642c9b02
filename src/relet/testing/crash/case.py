"""What is tested: the app, the task, and what people and other programs answer it meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from relet.connect import POSTGRES
from relet.core import border, limits
from relet.core.border import invalid, shown
from relet.core.work import BY_PERSON, NEED_VALUE, DecisionKind
from relet.worker.app import App, Handler
from relet.worker.binding import written
from relet.worker.main import load_app

if TYPE_CHECKING:
    from relet.core.work import Effect

Verify = Callable[..., Any]
"""`verify(db, task)`, or with the folder of what is outside of the store: a check of one's own after a run.

An AssertionError, or False, is a finding.
"""
Reconciler = Callable[["Effect"], Any]
"""`reconcile(effect)`: "applied", "not_applied", ("applied", receipt), or None for "nobody knows"."""


class Answer(msgspec.Struct, frozen=True):
    """What a person says to a question."""

    kind: DecisionKind
    value: Any = None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One task of one app, and everything that a run of it needs."""

    app: str
    """As module:app, since other processes import it."""
    kind: str
    queue: str
    kinds: frozenset[str]
    """All that the app works on: tasks of other kinds are left alone."""
    input: Any = None
    ttl: Any = None
    answers: dict[str, Answer] = {}
    signals: dict[str, Any] = {}
    wrap: str | None = None
    """module:function that is given the backend of each holder and answers the one to use in its place."""
    url: str | None = None
    """The PostgreSQL database in which each run has a schema of its own; without it each has a file."""
    limit_s: float = 60.0
    """How long one holder may take."""
    reconcile: Reconciler | None = None
    verify: Verify | None = None
    same_result: bool = False


def case_of(
    app: App | str, task: str | Handler, input: Any, *, answers: dict[str, Any] | None, limit: Any,
    url: str | None = None, **rest: Any,
) -> Case:  # fmt: skip
    """A case, checked. Raises `Invalid`."""
    if sys.platform == "win32":
        raise invalid("crash_test", "kills and freezes processes by signals, which Windows has not")
    if url is not None and url.partition(":")[0] not in POSTGRES:
        raise invalid("url", "is no PostgreSQL database: without one a crash test makes stores of its own in files")
    url = url and url.partition("#")[0]  # each run has a schema of its own, whichever is named
    path = path_of(app) if isinstance(app, App) else app
    found = load_app(path)
    kind = task.kind if isinstance(task, Handler) else border.name("task", task)
    if (handler := found.handlers.get(kind)) is None:
        kinds = ", ".join(sorted(found.handlers)) or "none at all"
        raise invalid("task", f"{path} has no handler of {kind!r}; it has {kinds}")
    return Case(
        app=path, kind=kind, url=url, queue=handler.queue, kinds=frozenset(found.handlers), input=input,
        answers={name: answer_of(name, one) for name, one in (answers or {}).items()},
        limit_s=border.duration_ms("limit", limit, least=1, most=limits.DAY_MS) / 1_000, **rest,
    )  # fmt: skip


def path_of(app: App) -> str:
    """Where an app can be imported from. Raises `Invalid` when no module holds it by name."""
    for handler in app.handlers.values():
        module = written(handler.function).__module__
        for name, value in vars(sys.modules.get(module, sys)).items():
            if value is app and module != "__main__":
                return f"{module}:{name}"
    raise invalid(
        "app", 'other processes must import it, and no module holds it by name; give it as "module:app", with '
        "the app at the top of a file"
    )  # fmt: skip


_KINDS: Final = tuple(str(kind) for kind in BY_PERSON)


def answer_of(name: str, given: Any) -> Answer:
    """A decision, as "accept" or ("edit", value). Raises `Invalid`."""
    kind, value = given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, None)  # noqa: PLR2004 - a pair
    if kind not in _KINDS:
        raise invalid("answers", f"{name}: {shown(given)} is no decision; give {', '.join(_KINDS)}")
    if DecisionKind(kind) in NEED_VALUE and value is None:
        raise invalid("answers", f"{name}: {kind} needs its value, as in ({kind!r}, …)")
    return Answer(DecisionKind(kind), value)
