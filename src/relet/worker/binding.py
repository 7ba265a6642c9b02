"""A task's input bound to a handler's parameters: by name, converted by annotation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from relet.client import asks
from relet.core.border import invalid, shown
from relet.core.errors import Permanent

INPUT_CODE = "RELET-INPUT"
OPTIONS = {"id", "tx", *inspect.signature(asks.submit).parameters} - {"queue", "inputs", "ids", "kind"}
"""What `submit` takes beside the input."""

PLAIN = (str, int, float, bool)
"""Types whose own values need no conversion."""


def written(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it was written, within a `functools.partial` or behind an object that is called."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function).__call__


class Binding:
    """How inputs meet one function's parameters. Raises `Invalid` when its annotations cannot be read."""

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        self.kind = kind
        self._function = written(function)
        self.is_async = any(map(inspect.iscoroutinefunction, (function, self._function)))
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except ValueError as wrong:
            raise invalid("handler", f"{kind}: {wrong}; wrap it in a function of your own") from wrong
        self.takes_run = bool(parameters) and self._is_run(parameters[0])
        parameters = parameters[self.takes_run :]
        self._open = any(one.kind is one.VAR_KEYWORD for one in parameters)
        self._named = {one.name: one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
        self._required = [name for name, one in self._named.items() if one.default is one.empty]
        self._by_place = [name for name, one in self._named.items() if one.kind is one.POSITIONAL_ONLY]
        # The only one, or the only one that must be given: one with a default may be added while tasks wait.
        alone = list(self._named) if len(self._named) == 1 else list(self._required)
        self._whole = alone[0] if len(alone) == 1 else None
        is_bare = len(self._named) == 1 and not self._open
        self._only_whole = is_bare and self._named[alone[0]].kind is inspect.Parameter.POSITIONAL_ONLY
        self._hints: dict[str, Any] | None = None
        self._plain: dict[str, Any] | None = None

    def arguments(self, payload: Any) -> tuple[list[Any], dict[str, Any]]:
        """What to call the function with, beside the run. Raises `Permanent`, code RELET-INPUT."""
        if type(payload) is dict and payload and self._is_as_written(payload):
            return [], payload
        if isinstance(payload, dict) and not self._only_whole and self._fits(payload):
            named = {name: self._convert(name, value) for name, value in payload.items()}
            return self._positional(named)
        if payload is None and not self._required and not self._only_whole:
            return [], {}  # none were given; and whoever gave a null by name sent an object
        odd = self._odd(payload)
        if self._whole is not None and self._may_be_whole(payload):
            try:
                return self._positional({self._whole: self._convert(self._whole, payload)})
            except Permanent as wrong:
                if payload is None and not self._required:
                    return [], {}
                if not odd:
                    raise
                raise Permanent(f"{wrong} ({odd})", code=INPUT_CODE) from wrong
        wanted = f"{self._wanted()}; {odd}" if odd else self._wanted()
        raise Permanent(f"{self.kind}: the input {shown(payload)} does not fit: {wanted}", code=INPUT_CODE)

    def input_of(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The input that a call's own arguments make, and the options of submit that remain."""
        names = list(self._named)
        if len(args) > len(names):
            raise invalid("input", f"{self.kind} takes {len(names)} positional arguments, {len(args)} were given")
        given = dict(zip(names, args, strict=False))
        options: dict[str, Any] = {}
        for name, value in named.items():
            if name in given:
                raise invalid(name, "was given twice")
            if name in self._named or (self._open and name not in OPTIONS):
                given[name] = value
            elif name in OPTIONS:
                options[name] = value
            else:
                raise invalid(name, f"is no option of submit, and no parameter of {self.kind}: {self._wanted()}")
        missing = [name for name in self._required if name not in given]
        if missing:
            raise invalid(missing[0], f"{self.kind} needs it: {self._wanted()}")
        if self._only_whole and self._whole is not None:
            return given.get(self._whole), options
        return given or None, options

    def _is_as_written(self, payload: dict[str, Any]) -> bool:
        """Is each parameter there by its name, and a value that needs no conversion: so most inputs are."""
        plain = self._plain
        if plain is None:
            plain = self._plain = self._plain_parameters()
        if len(payload) != len(plain):
            return False
        for name, value in payload.items():
            kind = plain.get(name)
            if kind is None or (kind is not Any and type(value) is not kind):
                return False
        return True

    def _plain_parameters(self) -> dict[str, Any]:
        """What each parameter takes as it is; nothing, unless all of them take something and are given by name."""
        kinds = {name: self._annotations().get(name, Any) for name in self._named}
        by_name = not self._by_place and not self._only_whole
        return kinds if by_name and all(kind is Any or kind in PLAIN for kind in kinds.values()) else {}

    def _may_be_whole(self, payload: Any) -> bool:
        if len(self._named) == 1 or not isinstance(payload, dict):
            return True
        # Beside other parameters an object is more likely meant by name, and wrong: a slip must not go by unseen.
        return self._whole in self._annotations() and not payload.keys() & self._named.keys()

    def _fits(self, payload: dict[str, Any]) -> bool:
        known = self._open or all(name in self._named for name in payload)
        return known and all(name in payload for name in self._required)

    def _odd(self, payload: Any) -> str:
        """What is missing in an input that was meant by name, and what is unknown."""
        given = payload if isinstance(payload, dict) else {}
        parts = [f"{name} is missing" for name in self._required if name not in given]
        parts += [f"{shown(name)} is unknown" for name in given if name not in self._named and not self._open]
        return ", ".join(parts)

    def _positional(self, named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return [named.pop(name) for name in self._by_place if name in named], named

    def _convert(self, name: str, value: Any) -> Any:
        kind = self._annotations().get(name, Any)
        if kind is Any or name not in self._named or (kind in PLAIN and type(value) is kind):
            return value
        try:
            if hasattr(kind, "model_validate"):
                return kind.model_validate(value)
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, ValueError) as wrong:
            raise Permanent(f"{self.kind}: {name} does not fit {_word(kind)}: {wrong}", code=INPUT_CODE) from wrong
        except TypeError:
            return value  # a type of the user's own, which has no JSON form to check against

    def _annotations(self) -> dict[str, Any]:
        if self._hints is None:
            try:
                self._hints = get_type_hints(self._function, include_extras=True)
            except NameError as wrong:
                raise invalid(
                    "handler", f"{self.kind}: its annotations cannot be read ({wrong}); import that name at the top"
                ) from wrong
        return self._hints

    def _is_run(self, first: inspect.Parameter) -> bool:
        if first.name == "run":
            return True
        text = first.annotation if isinstance(first.annotation, str) else getattr(first.annotation, "__name__", "")
        return text.rpartition(".")[2] in ("Run", "AsyncRun")

    def _wanted(self) -> str:
        if not self._named:
            return "it takes no input"
        return "it takes " + ", ".join(f"{name}: {_word(self._annotations().get(name, Any))}" for name in self._named)


def _word(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
