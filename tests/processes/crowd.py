"""Many processes that work through one queue of one file at the same time."""

from pathlib import Path

from tests.processes.whole import ask, is_whole, tokens_grow

CYCLES = Path(__file__).parent / "programs" / "cycles.py"
PATIENCE_S = 10


def work_through(db, start, url, processes, tasks, *options):
    """All tasks are done once, no call fails or waits for long, tokens grow; the tasks that each process did."""
    for begin in range(0, tasks, 500):
        db.submit_many("work", list(range(begin, min(begin + 500, tasks))))
    programs = [start(CYCLES, url, "work", *options) for _ in range(processes)]
    for program in programs:
        assert program.line() == "ready"
    for program in programs:
        program.tell("go")
    told = [program.value(within=240) for program in programs]
    assert [program.wait() for program in programs] == [0] * processes
    assert [program.errors for program in programs] == [""] * processes

    done = [token for one in told for token in one["tokens"]]
    assert len(done) == len(set(done)) == tasks
    for one in told:
        assert one["tokens"] == sorted(one["tokens"])
        assert one["longest_s"] < PATIENCE_S
    assert tokens_grow(db)
    assert ask(db, "SELECT state, count(*) FROM tasks GROUP BY state") == [("done", tasks)]
    assert ask(db, "SELECT count(*) FROM leases WHERE ended <> 'completed'") == [(0,)]
    assert is_whole(db)
    return [len(one["tokens"]) for one in told]
