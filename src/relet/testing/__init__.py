"""For tests of programs that use relet: a store with a steerable clock, the crash kit, and the conformance suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relet.testing.clock import Clock
from relet.testing.stores import store

if TYPE_CHECKING:
    from relet.testing.crash.examine import crash_test
    from relet.testing.crash.report import CrashTestFailed

_LATER = {"crash_test": "relet.testing.crash.examine", "CrashTestFailed": "relet.testing.crash.report"}
"""Names that few tests need; loaded when first asked for."""

__all__ = ["Clock", "CrashTestFailed", "crash_test", "store"]


def __getattr__(name: str) -> Any:
    if (module := _LATER.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)
