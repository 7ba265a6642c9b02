"""Several processes on one file: nobody is told BUSY, every task is done once. (More of them: faults.)"""

import pytest

from tests.processes.crowd import work_through


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--no-turns"]], ids=["in turns", "at the lock itself"])
def test_sq_01_no_busy_reaches_a_caller_and_every_task_is_done_once(db, start, url, options):
    shares = work_through(db, start, url, 4, 240, *options)
    assert all(shares)
