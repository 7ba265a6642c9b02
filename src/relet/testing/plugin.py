"""pytest fixtures, loaded by pytest itself: `relet_db`, and the `relet_clock` that it obeys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relet.testing.clock import Clock
from relet.testing.stores import SteeredClient, store

# Before any of the suites is imported: a failure then shows the values that were compared.
pytest.register_assert_rewrite("relet.testing.conformance", "relet.testing.fence_kit")


def pytest_configure(config: pytest.Config) -> None:
    """The suites say which faults of others their tests are about."""
    config.addinivalue_line("markers", "case(*ids): shows that relet does not fail in this way, see docs/faults.md")


@pytest.fixture
def relet_clock() -> Clock:
    """A clock that stands still until the test advances it."""
    return Clock()


@pytest.fixture
def relet_db(relet_clock: Clock) -> Iterator[SteeredClient]:
    """A fresh store, as a blocking client; steer it by `relet_db.clock.advance("2d")`."""
    with store(clock=relet_clock) as client:
        yield client
