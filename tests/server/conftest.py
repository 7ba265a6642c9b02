"""A service of its own for each test, asked in process."""

from pathlib import Path

import pytest

from tests.folders import quick_folder
from tests.server.served import Served


@pytest.fixture
def served():
    with quick_folder() as folder:
        served = Served(Path(folder))
        yield served
        served.close()
