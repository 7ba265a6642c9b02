"""The power goes at any moment: what a process was told is there, and no token is given out twice.

The system calls of an unmodified process are traced. From them images of the disk are made as a power cut may leave
it: of what was not synced any part has reached the disk, in sectors and in any order.
"""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from relet.client.blocking import Client
from relet.store.sqlite.backend import SqliteBackend
from relet.store.sqlite.clock import SystemClock
from tests.processes.disk_image import Chance, Disk
from tests.processes.program import IMPORTS
from tests.processes.traced import STRACE, Told, Write, events_of

pytestmark = pytest.mark.faults
TELLING = Path(__file__).parents[1] / "processes" / "programs" / "telling.py"
TASKS = 40
SEED = 20_250_101
CUTS = 108
SHARES = (0, 0.5, 1)
"""Of what was not synced when the power went: nothing has reached the disk, some, all."""


def traced(folder, *setting):
    """The events of a process that worked on a store in the folder, until it ended."""
    folder.mkdir()
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": IMPORTS, "RELET_STATE_DIR": f"{folder}/state"}
    trace = folder.with_suffix(".trace")
    done = subprocess.run(
        [*STRACE, "-o", trace, sys.executable, TELLING, f"sqlite:///{folder}/relet.db", str(TASKS), *setting],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = events_of(trace, folder)
    trace.unlink()
    assert sum(isinstance(event, Told) for event in events) == len(done.stdout.splitlines()) > 3 * TASKS
    told_at = [index for index, event in enumerate(events) if isinstance(event, Told)]
    within = events[told_at[0] : told_at[-1]]
    assert any(isinstance(event, Write) and event.path.endswith("/relet.db") for event in within), "no checkpoint"
    return events


class AfterTheCut(SystemClock):
    """The clock of the same machine, started again."""

    def __init__(self):
        super().__init__()
        if self.boot.machine_id:
            self.boot = self.boot._replace(boot_id="after the cut")


def images(events, folder, cuts=CUTS):
    """A folder with the files as a cut left them, and what had been told by then; one after the other."""
    chance = random.Random(SEED)
    # Just after something was told, and at any moment.
    told_at = [index for index, event in enumerate(events) if isinstance(event, Told)]
    chosen = set(chance.sample(told_at, cuts // 2)) | set(chance.sample(range(len(events)), cuts // 2))
    disk, told = Disk(), []
    image = folder.with_name("image")
    for index, event in enumerate(events):
        if isinstance(event, Told):
            told.append(json.loads(event.line))
        else:
            disk.do(index, event)
        for share in SHARES if index in chosen else ():
            shutil.rmtree(image, ignore_errors=True)
            image.mkdir()
            for path, content in disk.image(Chance(share, f"{SEED} {index} {share}")).items():
                # What the processes share in memory is gone with them.
                if not path.endswith("-shm"):
                    place = image / Path(path).relative_to(folder)
                    place.parent.mkdir(exist_ok=True)
                    place.write_bytes(content)
            yield image, f"cut after event {index} ({type(event).__name__}), {share} kept", told


def lost(image, told):
    """What was told and is not there; and what is given out again when the machine is back."""
    backend = SqliteBackend(f"sqlite:///{image}/relet.db", "default", clock=AfterTheCut(), state=image / "state")
    with Client(backend) as db:
        if findings := backend.verify().findings:
            yield f"not whole: {findings}"
        connection = apsw.Connection(str(image / "relet.db"), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            if connection.pragma("integrity_check") != "ok":
                yield "the file is damaged"
            tokens = {token for (token,) in connection.execute("SELECT token FROM leases")}
            tasks = {row[0]: row[1:] for row in connection.execute("SELECT id, state, result FROM tasks")}
            saved = {
                (task, version): json.loads(value)[0]
                for task, version, value in connection.execute(
                    "SELECT t.id, c.version, c.value FROM checkpoints c JOIN tasks t ON t.seq = c.task_seq"
                )
            }
        finally:
            connection.close()
        for one in told:
            kept = {
                "claimed": one["token"] in tokens,
                "saved": f"t-{saved.get((one['task'], one.get('version')))}" == one["task"],
                "completed": tasks.get(one["task"]) == ("done", json.dumps(one.get("result"))),
            }
            if not kept[one["verb"]]:
                yield f"lost: {one}"
        db.submit("work", id="after")
        fresh = db.claim(task_id="after").token
        if fresh <= max((one["token"] for one in told), default=0):
            yield f"token {fresh} was given out again"


def problems(events, folder, cuts=CUTS):
    found, made = [], 0
    for image, where, told in images(events, folder, cuts):
        made += 1
        found += [f"{where}: {problem}" for problem in lost(image, told)]
    return found, made


def test_nothing_that_was_told_is_lost_and_no_token_is_given_out_again(tmp_path):
    folder = tmp_path / "store"
    found, made = problems(traced(folder), folder)
    assert made >= 300
    assert found == []


def test_the_same_images_find_what_a_store_without_a_sync_at_each_commit_loses(tmp_path):
    folder = tmp_path / "store"
    found, _ = problems(traced(folder, "normal"), folder, cuts=24)
    assert all(any(f"'{verb}'" in problem for problem in found) for verb in ("claimed", "saved", "completed"))
    assert any("was given out again" in problem for problem in found)
    assert not any("damaged" in problem for problem in found)
