"""What a key may hold open at one time, and all keys together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from relet.server.rates import too_often


class Counted:
    """Streams, or claims that wait."""

    def __init__(self, per_key: int, in_all: int, what: str) -> None:
        self._per_key, self._in_all, self._what = per_key, in_all, what
        self._open: dict[str, int] = {}

    @contextmanager
    def one(self, key_id: str) -> Iterator[None]:
        """One more, for as long as the block lasts. Raises `Unavailable`."""
        self._check_room(key_id)
        self._open[key_id] = self._open.get(key_id, 0) + 1
        try:
            yield
        finally:
            self._open[key_id] -= 1
            if not self._open[key_id]:
                del self._open[key_id]

    def _check_room(self, key_id: str) -> None:
        if self._open.get(key_id, 0) >= self._per_key:
            raise too_often(f"this key has {self._per_key} {self._what} open, the limit", "Close some")
        if sum(self._open.values()) >= self._in_all:
            raise too_often(f"the service has {self._in_all} {self._what} open, the limit", "Try later")
