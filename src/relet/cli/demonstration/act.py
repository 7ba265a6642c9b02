"""What the acts of the demonstration share: a store, a queue of their own, and lines that are checked, then told."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from relet.cli.demonstration.cast import Place
from relet.client.blocking import Client

Tell = Callable[..., None]


class Broken(Exception):
    """A line of the story is not true."""


class Act(ABC):
    """Told line by line to `tell(ok, text, **facts)`."""

    def __init__(self, db: Client, place: Place, tell: Tell) -> None:
        self._db, self._place = db, place
        self._tell = tell
        self._queue = f"demo-{uuid.uuid4().hex[:8]}"

    @abstractmethod
    def run(self) -> None:
        """All of it. Raises `Broken` at the first line that does not hold."""

    def _check(self, holds: bool, text: str, **facts: Any) -> None:
        self._tell(holds, text, **facts)
        if not holds:
            raise Broken(text)
