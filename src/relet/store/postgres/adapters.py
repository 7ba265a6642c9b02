"""How values go to a server and come back: as the driver does it by itself, whatever a program has told it since."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg import postgres
from psycopg.adapt import AdaptersMap
from psycopg.types import array
from psycopg.types.numeric import Int8Dumper


class Ours:
    """What the driver is given in place of its settings for all of a program."""

    connection = None

    def __init__(self) -> None:
        self.adapters = AdaptersMap()
        postgres.register_default_types(self.adapters.types)
        postgres.register_default_adapters(self)
        array.register_all_arrays(self)
        # One type for all integers, so that a statement is prepared once and not for each size of its numbers.
        self.adapters.register_dumper(int, Int8Dumper)


OURS: Final = Ours()


class Lent(psycopg.RawCursor[tuple[Any, ...]]):
    """On a connection of a user's, whose own ways are for the cursors of the user's."""

    @property
    def adapters(self) -> AdaptersMap:
        """As on connections of our own."""
        return OURS.adapters
