"""A task that kills its worker is tried a few times and then set aside; the others are done meanwhile."""

import signal
from pathlib import Path

import pytest

from tests.processes.whole import is_whole
from tests.waiting import eventually

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.slow
def test_rd_01_losses_are_counted_and_after_the_last_one_the_task_is_a_dead_letter(db, start, url):
    poison = db.submit("work", kind="poison", priority=9)
    others = [db.submit("work", kind="plain") for _ in range(2)]
    starts, program = 0, None

    def ended_well():
        """What a supervisor does: whenever it dies, start it again."""
        nonlocal starts, program
        if program is None or program.process.poll() is not None:
            assert program is None or program.process.returncode == -signal.SIGKILL
            assert starts < 10, "the poison is run without end"
            program, starts = start(PROGRAMS / "poison_worker.py", url), starts + 1
        return db.task(poison.id).state == "failed" and all(db.task(one.id).state == "done" for one in others)

    eventually(ended_well, within=40)
    found = db.task(poison.id)
    assert (found.reason, found.losses, found.failures) == ("losses", 3, 0)
    assert "lapsed 3 times without a save" in found.error
    kinds = [str(event.kind) for event in db.history(poison.id)]
    assert kinds == ["submitted", "claimed", "lapsed", "claimed", "lapsed", "claimed", "failed"]
    assert [db.task(one.id).attempt for one in others] == [1, 1]
    assert starts == 4
    assert is_whole(db)
