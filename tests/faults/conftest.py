"""Fixtures of the tests with processes."""

from tests.processes.fixtures import actor, db, start, steered, url

__all__ = ["actor", "db", "start", "steered", "url"]
