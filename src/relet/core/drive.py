"""Run a rule without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

A = TypeVar("A")


def drive(rule: Coroutine[Any, Any, A]) -> A:
    """Run a coroutine that never suspends, and return its answer.

    Rules await nothing but their transaction; over a blocking engine that never waits, so one `send` runs
    them to the end. Raises RuntimeError, loudly, if one suspends all the same.
    """
    try:
        rule.send(None)
    except StopIteration as done:
        answer: A = done.value
        return answer
    rule.close()
    raise RuntimeError(f"{rule} suspended: a rule may await nothing but its transaction")
