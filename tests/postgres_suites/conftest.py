"""What these tests start from: a database of their own on a server that they have in common."""

import pytest

from tests.postgres_suites.matrix import RUNS_ALL, leave_out, number
from tests.postgres_suites.shared import server_of

SHARES = {"test_copy_suite.py": 5, "test_sidecar_of_a_block.py": 3, "test_apart.py": 3}
"""Long files whose tests are much alike: of each, every n-th is run together with all others over PostgreSQL."""


@pytest.fixture
def url(request):
    """Of an empty database."""
    with server_of(request.config).database() as url:
        yield url


def pytest_collection_modifyitems(config, items):
    leave_out(config, items, is_left_out)


def is_left_out(item):
    n = SHARES.get(item.path.name, 1)
    return not RUNS_ALL and item.get_closest_marker("postgres") is not None and number(item.nodeid, n) != 0
