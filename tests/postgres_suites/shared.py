"""One PostgreSQL server for all tests of a process of pytest's that do it no harm; each has a database of its own."""

import contextlib

import pytest

from tests.postgres import PostgresServer

SERVER = pytest.StashKey()


def server_of(config):
    """Started when it is first asked for; stopped when pytest ends."""
    if SERVER not in config.stash:
        stack = contextlib.ExitStack()
        config.stash[SERVER] = stack.enter_context(PostgresServer())
        config.add_cleanup(stack.close)
    return config.stash[SERVER]
