"""Servers that all tests of a process of pytest's have in common, and empty databases of each kind on them."""

import contextlib
from typing import NamedTuple

import pytest
from psycopg.conninfo import conninfo_to_dict

from relet.store.postgres.connect import WITHOUT
from tests.pgbouncer import PgBouncer
from tests.postgres import PostgresServer

RUNNING = pytest.StashKey()
FORBIDDEN = "skip_locked,listen,prepare,run,tuning"


class Place(NamedTuple):
    """One database."""

    url: str
    """Where stores find it."""
    direct_url: str
    """Where a test does, past a pooler."""
    without: str
    """Capabilities that its stores may not use."""
    is_hot: bool = False
    """Do those on a steered clock ask in single statements first, as all others do; else the rules answer all."""


def server_of(config, version=None):
    """Started when it is first asked for; stopped when pytest ends."""
    return _running(config, version, lambda: PostgresServer(version))


def pooler_of(config):
    return _running(config, PgBouncer, lambda: PgBouncer(server_of(config)))


def _running(config, name, make):
    running = config.stash.setdefault(RUNNING, {})
    if name not in running:
        with contextlib.ExitStack() as stack:
            running[name] = stack.enter_context(make())
            config.add_cleanup(stack.pop_all().close)
    return running[name]


@contextlib.contextmanager
def empty_database(config, kind):
    """A new database of a kind of the matrix."""
    server = server_of(config, "15" if kind == "15" else None)
    with server.database() as direct_url:
        name = conninfo_to_dict(direct_url)["dbname"]
        if kind == "serializable":
            server.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
        url = pooler_of(config).url(name) if kind == "pgbouncer" else direct_url
        yield Place(url, direct_url, FORBIDDEN if kind == "bare" else "", is_hot=kind == "18")


@contextlib.contextmanager
def forbidding(place):
    """Stores that are opened in this block, or by a program that is started in it, do without what it forbids."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(WITHOUT, place.without)
        yield place
