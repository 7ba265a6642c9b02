"""What these tests start from: a database of their own on a server that they have in common."""

import pytest

from tests.postgres_suites.shared import server_of


@pytest.fixture
def url(request):
    """Of an empty database."""
    with server_of(request.config).database() as url:
        yield url
