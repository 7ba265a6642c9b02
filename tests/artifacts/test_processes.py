"""Processes that are killed, run out of space, or do the same at once."""

import os
import random
import resource
import signal
import subprocess
import sys

import pytest

from relet.artifacts.local import LocalArtifacts
from tests.artifacts.killed import (
    PROGRAMS,
    kill_while_putting,
    leftovers_removed,
    put_against_collect,
    whole,
)
from tests.artifacts.places import drafts, uri

SIZE = 2_500_096
DATA = bytes(range(256)) * (SIZE // 256)


@pytest.mark.parametrize("again", [False, True], ids=["new", "there already"])
def test_ck_02_a_put_killed_at_any_point_leaves_a_whole_artifact_or_none(start, tmp_path, again):
    program = start(PROGRAMS / "dying_puts.py", tmp_path, SIZE, *(["again"] if again else []))
    deaths = program.rest()
    assert program.wait() == 0, program.errors
    assert deaths.pop() == "ended 0"
    assert {"open", "write", "fsync", "utime", "replace", "close"} <= set(deaths)
    assert deaths.count("write") == 3
    seen = []
    for n, death in enumerate(deaths):
        folder = tmp_path / str(n)
        found = whole(folder)
        assert found <= {uri(DATA)}, death
        seen.append(found == {uri(DATA)})
        assert leftovers_removed(folder) <= 1
        assert LocalArtifacts(folder).put(DATA).uri == uri(DATA)
        assert whole(folder) == {uri(DATA)}
    named = deaths.index("replace") + 1
    assert seen == [again] * named + [True] * (len(deaths) - named)


def test_what_was_told_to_be_stored_is_there_after_a_kill_at_any_moment(start, tmp_path):
    told, _ = kill_while_putting(start, tmp_path / "artifacts", random.randrange(1 << 32), rounds=3)
    assert len(told) >= 3


def test_two_processes_that_put_the_same_bytes_at_once_make_one_artifact(start, tmp_path):
    folder = tmp_path / "artifacts"
    programs = [start(PROGRAMS / "putting.py", folder, 7, 50_000) for _ in range(2)]
    told = [[program.line() for _ in range(50)] for program in programs]
    for program in programs:
        program.send(signal.SIGKILL)
        program.wait()
    assert told[0] == told[1]
    assert set(told[0]) <= whole(folder)
    store = LocalArtifacts(folder)
    assert len(list(store.list(0))) == len({one.uri for one in store.list(0)})


def test_a_collection_takes_nothing_that_is_put_and_named_at_that_moment(start, tmp_path):
    removed, lost = put_against_collect(start, tmp_path / "artifacts", tmp_path / "names", rounds=150, least=1)
    assert lost == 0
    assert removed > 0, "else nothing was tried"


LIMITED = """
import sys
from relet.artifacts.local import LocalArtifacts
from relet.core.errors import Unavailable
try:
    LocalArtifacts(sys.argv[1]).put(b"x" * 3_000_000)
except Unavailable as full:
    print(full.code)
"""


def test_a_put_that_runs_out_of_space_leaves_nothing(tmp_path):
    folder = tmp_path / "artifacts"
    LocalArtifacts(folder).put(b"before")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, folder], capture_output=True, text=True, check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000)),
    )  # fmt: skip
    assert done.stdout.split() == ["RELET-FULL"]
    assert whole(folder) == {uri(b"before")}
    assert drafts(LocalArtifacts(folder)) == []
    assert os.path.isdir(folder)
