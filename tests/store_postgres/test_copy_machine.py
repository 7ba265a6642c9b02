"""Whatever workers, crashes and clocks have made of a store, its copy reads the same."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.test_machine import Machine
from tests.store_postgres.copies import Move, compare

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
FEW = settings(
    max_examples=15, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow], derandomize=True,
    database=None,
)  # fmt: skip


def test_a_copy_of_what_any_sequence_made_reads_the_same(database):
    compared = 0

    class Copied(Machine):
        def teardown(self):
            nonlocal compared
            self.witness.close()
            for client in self.clients:
                client.close()
            self.clock.advance("3d")
            compare(Move(Path(self.folder.name), self.clock, database))
            self.folder.cleanup()
            compared += 1

    run_state_machine_as_test(Copied, settings=FEW)
    assert compared >= FEW.max_examples
