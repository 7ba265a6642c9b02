"""A store and its holders on one steered clock."""

import pytest

from relet.testing import Clock, store
from tests.client.line import Holder


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def db(clock):
    with store(clock=clock) as db:
        yield db


@pytest.fixture
def holder(db):
    return Holder(db)
