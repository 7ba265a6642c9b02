"""kill -9, in the middle of a sweep too: whoever looks next takes back what is due, once, and nothing else."""

import pytest

from tests.processes.whole import ask, is_whole

LEASED, BATCH = 100, 32


@pytest.mark.parametrize(("when", "closed"), [("before", BATCH), ("after", 2 * BATCH)])
def test_rd_10_another_process_goes_on_where_a_killed_sweeper_stopped(steered, actor, when, closed):
    steered.submit_many("work", [None] * LEASED)
    assert len(steered.claim_many("work", LEASED)) == LEASED
    steered.clock.advance("61s")
    victim = actor(FAULT=f"{when}:sweep:2")
    victim.tell("sweep")
    assert victim.program.wait() == -9
    assert is_whole(steered)
    assert len(ask(steered, "SELECT 1 FROM events WHERE kind = 'lapsed'")) == closed
    assert steered.sweep() == LEASED - closed
    assert ask(steered, "SELECT count(*), count(DISTINCT task_seq) FROM events WHERE kind = 'lapsed'") == [(100, 100)]
    assert is_whole(steered)
    steered.clock.advance("10s")
    again = steered.claim_many("work", LEASED)
    assert [lease.attempt for lease in again] == [2] * LEASED


def test_rd_10_a_claim_does_what_the_killed_sweeper_left(steered, actor):
    tasks = steered.submit_many("work", [None] * 3)
    steered.claim_many("work", 3)
    steered.clock.advance("61s")
    victim = actor(FAULT="before:sweep:1")
    victim.tell("sweep")
    assert victim.program.wait() == -9
    assert {lease.task_id for lease in steered.claim_many("work", 3)} == {task.id for task in tasks}


def test_rd_08_leases_of_one_killed_process_come_back_each_after_its_own_ttl(steered, actor):
    steered.submit("work", id="short", ttl=3)
    steered.submit("work", id="long", ttl=600)
    victim = actor()
    assert [victim("claim", "work")["id"] for _ in range(2)] == ["short", "long"]
    victim.program.process.kill()
    assert victim.program.wait() == -9
    steered.clock.advance("2999ms")
    assert steered.claim("work") is None
    steered.clock.advance("1ms")
    assert steered.claim("work").task_id == "short"
    assert steered.claim("work") is None
    assert steered.task("long").live
