"""Stores in a folder of the test's own, on a clock that it steers."""

import pytest

from relet.testing import Clock
from relet.testing.stores import open_store


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def connect(tmp_path):
    """Opens the test's store, as often as it is called; everything is closed at the end."""
    opened = []

    def connect(clock, folder=tmp_path):
        opened.append(open_store(folder, clock))
        return opened[-1]

    yield connect
    for client in opened:
        client.close()


@pytest.fixture
def db(connect, clock):
    return connect(clock)
