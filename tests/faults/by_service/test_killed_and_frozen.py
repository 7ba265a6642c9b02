"""What killed and frozen holders leave behind who are at a service: the same as those who are at the store."""

import pytest

from tests.processes.test_frozen import (  # noqa: F401 - they are run here over other fixtures
    test_ec_10_a_woken_worker_is_told_its_writes_are_refused_and_it_goes_on,
    test_ts_01_two_workers_one_frozen_make_one_takeover,
)
from tests.processes.test_killed_at_commit import (  # noqa: F401 - they are run here over other fixtures
    killed,
    test_ck_02_killed_around_the_commit_of_a_save_one_whole_checkpoint_is_there,
    test_cr_05_killed_after_the_commit_of_a_claim_the_task_comes_back_after_its_ttl,
    test_killed_before_the_commit_of_a_claim_nothing_was_claimed,
)

pytestmark = pytest.mark.faults
