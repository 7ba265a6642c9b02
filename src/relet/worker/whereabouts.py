"""Where the function of a handler stands, so that another process finds it there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from relet.core.border import invalid
from relet.worker.app import App, Handler
from relet.worker.binding import written

MAIN = "__main__"


def where_is(handler: Handler) -> tuple[str, str | None, str]:
    """Module, path of the script where it is one, and name of a handler's function. Raises `Invalid`.

    A module that was started by `python -m` is found by its own name.
    """
    function = written(handler.function)
    module, name = getattr(function, "__module__", None) or MAIN, function.__qualname__
    where = vars(sys.modules[module]) if module in sys.modules else {}
    if "<" in name or found_in(where, name, handler.kind) is None:
        raise invalid(
            "isolation",
            f"{handler.kind}: {name} is not at the top of a module, where another process finds it; put it into "
            "one, and the app beside it",
        )
    if module != MAIN:
        return module, None, name
    spec = where.get("__spec__")
    if spec is not None and spec.name != MAIN:
        return spec.name, None, name
    path = where.get("__file__")
    if path is None or not os.path.isfile(path):
        raise invalid("isolation", f"{handler.kind}: its module has no file; move it into one, and import it")
    return module, os.path.abspath(path), name


def found_in(names: Mapping[str, Any], name: str, kind: str) -> Handler | None:
    """The handler of a kind in a module: what bears the name of its function, or what an app there has."""
    first, *rest = name.split(".")
    found: Any = names.get(first)
    for part in rest:
        found = getattr(found, part, None)
    if isinstance(found, Handler) and found.kind == kind:
        return found
    # Its name means the bare function here, or another one; the app knows the handler that was made of it.
    for app in names.values():
        if isinstance(app, App) and (made := app.handlers.get(kind)) and written(made.function).__qualname__ == name:
            return made
    return None
