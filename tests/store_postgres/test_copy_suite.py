"""Whatever a test of the suite has brought a store to, its copy reads the same."""

from pathlib import Path

import pytest

from relet.testing.conformance.bounds import *  # noqa: F403 - tests of the suite are collected here
from relet.testing.conformance.cancel import *  # noqa: F403
from relet.testing.conformance.checkpoints import *  # noqa: F403
from relet.testing.conformance.decide import *  # noqa: F403
from relet.testing.conformance.effects import *  # noqa: F403
from relet.testing.conformance.exclusive import *  # noqa: F403
from relet.testing.conformance.fail import *  # noqa: F403
from relet.testing.conformance.feeds import *  # noqa: F403
from relet.testing.conformance.knobs import *  # noqa: F403
from relet.testing.conformance.park import *  # noqa: F403
from relet.testing.conformance.prune import *  # noqa: F403
from relet.testing.conformance.reconcile import *  # noqa: F403
from relet.testing.conformance.requeue import *  # noqa: F403
from relet.testing.conformance.shares import *  # noqa: F403
from relet.testing.conformance.signal import *  # noqa: F403
from relet.testing.conformance.steps import *  # noqa: F403
from relet.testing.conformance.tenants import *  # noqa: F403
from tests.conformance.blocking import BlockingRoute
from tests.folders import quick_folder
from tests.store_postgres.copies import Move, compare

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
LONG_PAST = "3d"
"""However long a test lets its leases last, they have lapsed by then."""


@pytest.fixture(scope="module")
def shelf(databases):
    """A database for all of these tests: a copy takes the place of the one before, as after one that was cut."""
    with databases.emptied() as url:
        yield url


@pytest.fixture
def route(shelf):
    with quick_folder() as folder:
        route = BlockingRoute(Path(folder))
        yield route
        for client in route._opened:
            client.close()
        route.clock.advance(LONG_PAST)
        compare(Move(route.folder, route.clock, shelf))
