"""Kill, race and collect with real processes, as often as a test likes."""

import os
import random
from pathlib import Path

from relet.artifacts.local import LocalArtifacts
from tests.artifacts.places import drafts

PROGRAMS = Path(__file__).parent / "programs"
KILLED = -9
NOW_AND_LATER_S = 1e10
BATCHES_MAX = 50


def whole(folder):
    """Every artifact that is visible there, each of them read to its end."""
    store = LocalArtifacts(folder)
    found = [one.uri for one in store.list(0)]
    for uri in found:
        store.read(uri)  # raises when it is not what it says
    return set(found)


def leftovers_removed(folder):
    """Are drafts all that a kill leaves, and are they gone once they are old."""
    store = LocalArtifacts(folder)
    left = len(drafts(store))
    assert set(os.listdir(folder) if os.path.isdir(folder) else ()) <= {"drafts", "sha256", "lock"}
    assert store.tidy(NOW_AND_LATER_S).n == left
    assert drafts(store) == []
    return left


def kill_while_putting(start, folder, seed, rounds):
    """Kill a program that puts, at a random moment after a random number of puts, `rounds` times."""
    chance = random.Random(seed)
    told, left = set(), 0
    for n in range(rounds):
        program = start(PROGRAMS / "putting.py", folder, f"{seed}{n}")
        told |= {program.line() for _ in range(chance.randrange(1, 6))}
        program.process.kill()
        assert program.wait() == KILLED
        told |= set(program.rest())
        assert told <= whole(folder), f"seed {seed}"
        left += leftovers_removed(folder)
    return told, left


def put_against_collect(start, folder, names, rounds, least):
    """Two programs that put and name, one that collects; what the collector removed, and what the others lost.

    How often it comes between a put and its name is left to chance: it is gone on for until it has removed so many.
    """
    names.mkdir()
    removed = lost = 0
    for batch in range(BATCHES_MAX):
        gone, missed = _put_against_collect(start, folder, names, (2 * batch, 2 * batch + 1), rounds)
        removed, lost = removed + gone, lost + missed
        if removed >= least:
            break
    return removed, lost


def _put_against_collect(start, folder, names, seeds, rounds):
    collector = start(PROGRAMS / "collecting.py", folder, names)
    collector.until("ready")
    writers = [start(PROGRAMS / "naming.py", folder, names, seed, rounds) for seed in seeds]
    answers = [writer.value(within=120) for writer in writers]
    collector.tell("stop")
    return int(collector.line()), sum(one["lost"] for one in answers)
