"""Fixtures of the tests with processes."""

from tests.processes.fixtures import actor, database, db, outside, start, steered, url

__all__ = ["actor", "database", "db", "outside", "start", "steered", "url"]
