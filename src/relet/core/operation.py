"""One verb as data: what is asked, what is answered, the rule between them; it stands at the end of a rule's file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

import msgspec


class Operation(NamedTuple):
    """One verb: what is asked, what is answered, the rule between them, and what transports must know."""

    name: str
    request: type[msgspec.Struct]
    answer: Any
    rule: Callable[..., Coroutine[Any, Any, Any]]
    summary: str
    writes: bool = True
    durable: bool = True
    """Acknowledged means on disk; only renewals are not, since losing one loses nothing but time."""
    replay_safe: bool = True
    """The same request may be sent again when its outcome is unknown."""
    for_agents: bool = True
    unlinks: bool = False
    """Removes rows with all that refer to them, and so need not have the engine look for those."""
    at_once: bool = True
    """An engine may answer it by statements of its own where it has some."""


def operation_of(request: type[msgspec.Struct]) -> Operation:
    """The operation of a request, from the file that has both: who asks for one verb has loaded no other."""
    if (found := _FOUND.get(request)) is None:
        here = vars(sys.modules[request.__module__]).values()
        _FOUND.update({one.request: one for one in here if isinstance(one, Operation)})
        found = _FOUND[request]
    return found


_FOUND: Final[dict[type[msgspec.Struct], Operation]] = {}
