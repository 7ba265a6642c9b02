"""What these tests start from: a database of their own, on each kind of server."""

import pytest

from tests.postgres_suites import matrix
from tests.postgres_suites.matrix import ROUTES, RUNS_ALL, leave_out, name_without, number, route_of
from tests.postgres_suites.shared import empty_database, forbidding

SHARES = {"test_copy_suite.py": 5, "test_sidecar_of_a_block.py": 3, "test_apart.py": 3}
"""Long files whose tests are much alike: of each, every n-th is run together with all others over PostgreSQL."""


@pytest.fixture(params=ROUTES)
def url(request):
    """Of an empty database."""
    with empty_database(request.config, ROUTES[request.param]) as place, forbidding(place):
        yield place.url


def pytest_collection_modifyitems(config, items):
    leave_out(config, items, is_left_out)
    matrix.pytest_collection_modifyitems(config, items)


def is_left_out(item):
    n = SHARES.get(item.path.name, 1)
    test = name_without(route_of(item) or "", item)
    return not RUNS_ALL and item.get_closest_marker("postgres") is not None and number(test, n) != 0
