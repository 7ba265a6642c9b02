"""Find a server that answers: of several addresses one after the other, all of them in the time of one."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Final, Self

import psycopg
from psycopg._conninfo_attempts import conninfo_attempts  # it has no other name, and asks for what names stand for
from psycopg.abc import PQGenConn
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from relet.store.postgres.place import CONNECT_S

_SHARE: Final = threading.local()
"""How long the attempt that this thread makes may take: the driver itself grants none less than two seconds."""


class Reaching(psycopg.Connection[tuple[Any, ...]]):
    """Its addresses may be silent, however many there are. A URL that names a time is taken at its word."""

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """As the driver does it. Raises `OperationalError` within `CONNECT_S`."""
        params = conninfo_to_dict(conninfo)
        if params.get("connect_timeout") is not None or "PGCONNECT_TIMEOUT" in os.environ:
            return super().connect(conninfo, **kwargs)
        until = time.monotonic() + CONNECT_S
        attempts = conninfo_attempts(params)
        refused: list[psycopg.Error] = []
        for n, attempt in enumerate(attempts):
            _SHARE.seconds = max(0.0, until - time.monotonic()) / (len(attempts) - n)
            try:
                return super().connect(make_conninfo("", **attempt, connect_timeout=CONNECT_S), **kwargs)
            except psycopg.Error as wrong:
                refused.append(wrong)
            finally:
                _SHARE.seconds = None
        last = refused[-1]
        if len(refused) > 1:
            raise type(last)("; ".join(dict.fromkeys(str(each) for each in reversed(refused)))) from last
        raise last

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> PQGenConn[Self]:
        seconds: float | None = getattr(_SHARE, "seconds", None)
        until = None if seconds is None else time.monotonic() + seconds
        steps = super()._connect_gen(conninfo)
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if until is not None and time.monotonic() >= until:
                    raise psycopg.errors.ConnectionTimeout(f"no answer within {seconds:.1f} s")
                wanted = steps.send(ready)
        except StopIteration as made:
            connection: Self = made.value
            return connection
