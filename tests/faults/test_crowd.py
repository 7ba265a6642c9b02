"""Eight processes on one file: nobody is told BUSY, every task is done once, the file stays sound."""

import pytest

from tests.processes.crowd import work_through

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("options", [[], ["--no-turns"]], ids=["in turns", "at the lock itself"])
def test_sq_01_eight_processes_of_three_hundred_cycles_each_see_no_busy(db, start, url, options):
    shares = work_through(db, start, url, 8, 8 * 300, *options)
    assert all(shares)
