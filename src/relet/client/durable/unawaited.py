"""Verbs that were called and never awaited: nothing of them was done, and nobody else would say so."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar, cast

CALLS_KEPT: Final = 64
"""How many calls are remembered before those that have begun are forgotten."""


class Calls:
    """The verbs that a handler has called so far."""

    def __init__(self) -> None:
        self._made: list[tuple[str, Coroutine[Any, Any, Any]]] = []

    def add(self, name: str, made: Coroutine[Any, Any, Any]) -> None:
        """Remember a call; kept alive, so that one that is dropped at once is seen too."""
        if len(self._made) >= CALLS_KEPT:
            self._made = [call for call in self._made if _is_waiting(call[1])]
        self._made.append((name, made))

    def never_awaited(self) -> list[str]:
        """The names of those that have not begun, and now never will."""
        waiting = [(name, made) for name, made in self._made if _is_waiting(made)]
        for _, made in waiting:
            made.close()  # or Python would say it once more, in words that name no task
        return [name for name, _ in waiting]


V = TypeVar("V", bound=Callable[..., Coroutine[Any, Any, Any]])


def noted(verb: V) -> V:
    """A verb of whoever has `calls`, each call of which is remembered there."""

    @functools.wraps(verb)
    def call(self: Any, /, *args: Any, **named: Any) -> Coroutine[Any, Any, Any]:
        made = verb(self, *args, **named)
        if self.calls is None:
            self.calls = Calls()
        self.calls.add(verb.__name__, made)
        return made

    return cast("V", call)


def _is_waiting(made: Coroutine[Any, Any, Any]) -> bool:
    return inspect.getcoroutinestate(made) == inspect.CORO_CREATED
