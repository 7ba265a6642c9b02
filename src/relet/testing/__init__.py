"""For tests of programs that use relet: a store with a steerable clock, and the conformance suite."""

from __future__ import annotations

from relet.testing.clock import Clock
from relet.testing.stores import store

__all__ = ["Clock", "store"]
