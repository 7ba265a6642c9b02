"""Where the sequences run over PostgreSQL."""

from tests.postgres_suites.matrix import pytest_collection_modifyitems

__all__ = ["pytest_collection_modifyitems"]
