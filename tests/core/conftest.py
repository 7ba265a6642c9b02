"""A fresh scene for each test of a rule."""

import pytest

from tests.core.scene import Scene


@pytest.fixture
def scene():
    return Scene()
