"""Three servers under Patroni lose their leader under load; nothing that was acknowledged is lost."""

import pytest

from tests.faults.postgres.judge import judge
from tests.faults.postgres.load import Load
from tests.patroni import PatroniCluster

pytestmark = [pytest.mark.postgres, pytest.mark.faults]
RECOVERY_S = 45.0


@pytest.mark.parametrize("strike", ["kill_leader", "cut_off_leader"])
def test_the_leader_is_lost_and_another_one_takes_over(start, tmp_path, told, strike):
    with PatroniCluster() as cluster, Load(cluster.url(), start, tmp_path, workers=2, rate=20) as load:
        load.flow(completions=20)
        load.struck()
        struck = getattr(cluster, strike)()
        cluster.wait_for_new_leader(struck)
        load.flow(completions=20)
        story = load.finish()
        told(story)
        judge(story, cluster.leader().url(), load.db)
    assert story.recovered_s < RECOVERY_S
