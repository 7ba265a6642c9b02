"""Programs of these tests, and a place for what they write."""

import sys

import pytest

from tests.processes.fixtures import start

__all__ = ["start"]


@pytest.fixture
def told(capsys, request):
    """Say how long it took, also where nobody asked for output."""

    def told(story):
        with capsys.disabled():
            sys.stdout.write(f"\n  {request.node.name}: {story.told()}\n")

    return told
