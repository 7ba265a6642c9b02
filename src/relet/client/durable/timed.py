"""A call in a thread of its own, which may be left when it takes too long; what it returns then is not lost."""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any

Late = Callable[[Any], None]
"""Called in its thread with what a function returned after nobody waited for it any more."""


class Listened:
    """A function in a thread that may be left; it cannot be ended, and what it returns then goes to `late`."""

    def __init__(self, function: Callable[..., Any], late: Late | None) -> None:
        self.function = function
        self._late = late
        self._lock = threading.Lock()
        self._left = self._returned = False
        self._value: Any = None

    def __call__(self, *args: Any) -> Any:
        value = self.function(*args)
        with self._lock:
            self._value, self._returned, left = value, True, self._left
        if left:
            self.tell_late()
        return value

    def leave(self) -> bool:
        """Wait for it no longer; False when it has returned already."""
        with self._lock:
            self._left = True
            return not self._returned

    def tell_late(self) -> None:
        """Nobody takes what it has returned any more; blocks as long as `late` does."""
        if self._late is not None and not inspect.isawaitable(self._value):
            self._late(self._value)


def within(seconds: float, function: Listened, args: tuple[Any, ...]) -> Any:
    """The answer of a function that may take so long."""
    said: list[tuple[bool, Any]] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            said.append((True, context.run(function, *args)))
        except BaseException as raised:  # noqa: BLE001 - raised again where it is waited for
            said.append((False, raised))

    thread = threading.Thread(target=work, name="relet-timed", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive() and function.leave():
        raise TimeoutError(f"{named(function.function)} took longer than {seconds:g} s")
    thread.join()  # it has returned, or raised, and says so at once
    good, value = said[0]
    if good:
        return value
    raise value


def named(function: Callable[..., Any]) -> str:
    """What to call a function in a message."""
    return getattr(function, "__name__", repr(function))
