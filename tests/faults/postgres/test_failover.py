"""The primary is lost and its standby takes over, under load; also one that had not heard of everything."""

import pytest

from tests.faults.postgres.judge import judge, no_token_means_two_things, rows, tokens_only_grow
from tests.faults.postgres.load import Load
from tests.replicas import Replicas

pytestmark = [pytest.mark.postgres, pytest.mark.faults]
RECOVERY_S = 10.0


def test_a_synchronous_standby_takes_over_and_nothing_that_was_acknowledged_is_lost(start, tmp_path, told):
    with Replicas(synchronous=True) as pair, Load(pair.url(), start, tmp_path) as load:
        load.flow()
        load.struck()
        pair.kill_primary()
        pair.promote()
        load.flow()
        story = load.finish()
        told(story)
        judge(story, pair.standby.url(), load.db)
    assert story.recovered_s < RECOVERY_S


@pytest.mark.case("PG-08")
def test_a_standby_that_lags_loses_results_and_issues_no_token_twice(start, tmp_path, told):
    with Replicas(synchronous=False) as pair, Load(pair.url(), start, tmp_path) as load:
        load.flow()
        pair.catch_up()
        pair.part()
        load.flow()
        load.struck()
        pair.kill_primary()
        pair.promote()
        load.flow()
        story = load.finish()
        told(story)
        tokens_only_grow(story)
        no_token_means_two_things(story, pair.standby.url())
        assert story.held == "completed", "the standby knew of it, and it goes on under the same token"
        kept = {task for (task,) in rows(pair.standby.url(), "SELECT id FROM relet.tasks")}
        assert set(story.submitted) - kept, "the standby had everything: nothing was tried"
        assert (found := load.db.backend.verify().findings) == [], found
    assert story.recovered_s < RECOVERY_S
