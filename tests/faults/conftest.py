"""Fixtures of the tests with processes."""

from tests.processes.fixtures import actor, db, outside, start, steered, url

__all__ = ["actor", "db", "outside", "start", "steered", "url"]
