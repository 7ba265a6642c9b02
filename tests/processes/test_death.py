"""A holder that dies on this machine is missed at once; one that lives, stopped even, is not."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import relet
from relet.store.sqlite import bonds, death
from relet.worker import warden as warden_room
from relet.worker.warden import PROGRAM, Warden
from tests.processes.freezing import freeze, thaw
from tests.processes.program import gone, living_in_group
from tests.processes.whole import is_whole
from tests.waiting import Gate, eventually

PROGRAMS = Path(__file__).parent / "programs"
EXEC = Path(__file__).parents[1] / "worker" / "programs" / "exec_program.py"
WITHIN_S = 5.0
"""Far less than the ttl of a minute, whatever else the machine does; the bench measures the tenth of a second."""


def locks_beside(db):
    file = Path(db.place)
    return sorted(one.name.rpartition("-")[2] for one in file.parent.glob(f"{file.name}{bonds.INFIX}*"))


def rows_of_locks(db):
    return [lock for lock, *_ in db.backend.store._read.connection().execute("SELECT lock FROM holders").fetchall()]


@pytest.fixture
def worker(db, start, url):
    def worker(kind="work", n=1, concurrency=1):
        tasks = [db.submit("work", kind=kind) for _ in range(n)]
        program = start(PROGRAMS / "bound_worker.py", url, str(concurrency))
        said = [program.line().split() for _ in range(n)]
        return program, tasks, said

    return worker


def test_a_killed_workers_task_is_taken_over_at_once_and_everybody_is_told_why(db, worker):
    program, (task,), ((_, token, _),) = worker()
    assert db.claim("work") is None
    program.process.kill()
    lease = db.claim("work", wait=WITHIN_S)
    assert (lease.task_id, lease.attempt, lease.load()) == (task.id, 2, "half")
    assert (lease.took_over.token, lease.took_over.reason) == (int(token), "holder_died")
    lapsed = next(event for event in db.history(task.id) if event.kind == "lapsed")
    assert (lapsed.detail["why"], lapsed.token, "expired_ms_ago" in lapsed.detail) == (
        "holder_died",
        int(token),
        False,
    )
    assert (db.task(task.id).losses, locks_beside(db)) == (1, [])
    lease.complete()
    (advice,) = db.advise("work")
    assert (advice.lapsed, advice.died) == (1, 1), "it waited for no ttl"
    assert is_whole(db)


def test_its_handle_is_refused_with_the_reason_until_somebody_else_takes_the_task(db, worker):
    program, (task,), ((_, _, handle),) = worker()
    program.process.kill()
    program.wait()
    eventually(db.backend.bury)
    db.cancel_many(dry_run=True)
    with pytest.raises(relet.LeaseLost) as lost:
        db.lease(handle).save("late")
    assert (lost.value.reason, db.task(task.id).state) == ("holder_died", "ready")


def test_all_that_a_worker_held_ends_with_it_and_nobody_elses(db, worker):
    other = db.claim(task_id=db.submit("q", ttl=60).id)
    program, tasks, _ = worker(n=3, concurrency=3)
    program.process.kill()
    program.wait()
    assert eventually(db.backend.bury) == 3
    assert [db.task(task.id).state for task in tasks] == ["ready"] * 3
    assert other.check() is None


def test_a_stopped_holder_is_not_dead(db, worker):
    program, (task,), _ = worker()
    freeze(program, db)
    assert (db.backend.bury(), db.claim("work"), db.task(task.id).live) == (0, None, True)
    thaw(program)


def test_a_worker_that_becomes_another_program_has_ended(db, worker):
    program, (task,), _ = worker("replaced")
    assert program.line() == "another"
    lease = db.claim("work", wait=WITHIN_S)
    assert (lease.task_id, lease.took_over.reason) == (task.id, "holder_died")


def test_a_forked_child_of_the_worker_is_waited_for(db, worker):
    program, (task,), ((_, child),) = worker("forks")
    program.process.kill()
    program.wait()
    assert (db.backend.bury(), db.claim("work")) == (0, None)
    os.kill(int(child), signal.SIGKILL)
    assert db.claim("work", wait=WITHIN_S).task_id == task.id


def test_what_a_handler_started_in_the_workers_group_does_not_outlive_the_worker(db, worker):
    program, (task,), _ = worker("starts")
    program.process.kill()
    assert db.claim("work", wait=WITHIN_S).task_id == task.id
    assert gone(program.pid)


def test_of_a_group_that_a_worker_shares_only_what_it_has_started_ends_with_it(db, start, url):
    task = db.submit("work", kind="starts")
    shell = ("sh", "-c", 'sleep 301 & echo $!; "$@" & wait', "sh")
    program = start(PROGRAMS / "bound_worker.py", url, "1", before=shell)
    beside = int(program.line())
    _, child, worker = program.line().split()
    assert {beside, int(child), int(worker)} <= set(living_in_group(program.pid))
    os.kill(int(worker), signal.SIGKILL)
    assert db.claim("work", wait=WITHIN_S).task_id == task.id
    eventually(lambda: int(child) not in living_in_group(program.pid))
    assert {beside, program.pid} <= set(living_in_group(program.pid))


def test_a_fork_in_the_workers_group_holds_neither_its_warden_nor_its_lock(db, worker):
    program, (task,), _ = worker("forks_within")
    program.process.kill()
    assert db.claim("work", wait=WITHIN_S).task_id == task.id
    assert gone(program.pid)


def test_a_warden_whose_parents_death_the_system_does_not_tell_looks_for_itself(start):
    program = start(PROGRAMS / "warded.py", PROGRAMS / "unaided_killer.py")
    group, _ = (int(word) for word in program.line().split())
    program.process.kill()
    assert gone(group)


def test_a_warden_that_begins_when_its_worker_is_dead_already_kills_what_is_left():
    worker = subprocess.Popen([sys.executable, "-c", "pass"])
    worker.wait()
    left = subprocess.Popen(["sleep", "60"], start_new_session=True)
    said, pipe = os.pipe()
    os.write(pipe, f"={left.pid}\n".encode())
    try:
        # Held open, as by a fork of the worker: the dead worker's last words are all that counts.
        subprocess.run([sys.executable, str(PROGRAM), str(worker.pid)], stdin=said, timeout=30, check=True)
    finally:
        os.close(said)
        os.close(pipe)
    assert left.wait(timeout=30) == -signal.SIGKILL


def test_the_first_verb_from_another_process_leaves_the_lease_to_its_ttl(db, worker):
    program, (task,), ((_, _, handle),) = worker()
    lease = db.lease(handle)
    lease.save("by another")
    program.process.kill()
    program.wait()
    assert (db.backend.bury(), db.claim("work"), db.task(task.id).live) == (0, None, True)
    lease.complete("done by the other one")
    assert db.task(task.id).state == "done"


@pytest.mark.parametrize("change", ["gone", "another"])
def test_a_lock_file_that_is_gone_or_another_one_proves_nothing(db, worker, change):
    program, (task,), _ = worker()
    (lock,) = locks_beside(db)
    file = Path(f"{db.place}{bonds.INFIX}{lock}")
    if change == "another":
        file.rename(file.with_name("kept"))  # so that its inode is not given out again
        file.touch()
    else:
        file.unlink()
    program.process.kill()
    program.wait()
    assert (db.backend.bury(), db.claim("work"), db.task(task.id).live) == (0, None, True)


def test_an_orderly_end_leaves_no_file_and_no_row(db, worker):
    program = worker(n=0)[0]
    eventually(lambda: locks_beside(db))
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    assert (locks_beside(db), db.backend.store._read.connection().execute("SELECT * FROM holders").fetchall()) == (
        [],
        [],
    )


def test_two_workers_of_one_process_share_its_lock(db):
    first, second = db.backend.bind(), db.backend.bind()
    assert first == second
    assert locks_beside(db) == [first.lock]


def test_a_lock_that_no_row_could_be_written_for_is_let_go_of_and_the_next_one_is_named(db, monkeypatch):
    answer, refused = db.backend.store.answer, []

    def busy(operation, *ask):
        if operation.name == "bind" and not refused:
            refused.append(operation)
            raise relet.Unavailable("the store is busy")
        return answer(operation, *ask)

    monkeypatch.setattr(db.backend.store, "answer", busy)
    with pytest.raises(relet.Unavailable, match="busy"):
        db.backend.bind()
    assert locks_beside(db) == []
    bond = db.backend.bind()
    assert rows_of_locks(db) == locks_beside(db) == [bond.lock]


def test_a_lock_is_answered_to_nobody_before_a_row_names_it(db, monkeypatch):
    answer, asking, go_on = db.backend.store.answer, Gate(), Gate()
    named = []

    def slow(operation, *ask):
        if operation.name == "bind":
            asking.set()
            go_on.pass_through()
        return answer(operation, *ask)

    def bind():
        named.append((db.backend.bind().lock, rows_of_locks(db)))

    monkeypatch.setattr(db.backend.store, "answer", slow)
    threads = [threading.Thread(target=bind) for _ in range(2)]
    threads[0].start()
    asking.pass_through()
    threads[1].start()
    threads[1].join(0.2)
    assert named == []
    go_on.set()
    for thread in threads:
        thread.join()
    assert [rows for _, rows in named] == [[named[0][0]]] * 2


def test_looks_at_others_and_locks_that_are_given_up_leave_no_file_open(db, url):
    db.backend.bind()
    counts = []
    for bind in (False, False, True, True, True):
        with relet.connect(url) as other:
            assert other.claim("q") is None
            if bind:
                other.backend.bind()
        counts.append(len(os.listdir("/dev/fd")))
    assert counts == counts[:1] * 5


def test_a_lock_that_is_given_up_is_not_answered_again(db):
    first = db.backend.bind()
    death.leave(db.backend.store)
    second = db.backend.bind()
    assert first.lock != second.lock
    assert rows_of_locks(db) == locks_beside(db) == [second.lock]


def test_a_lock_of_another_boot_proves_nothing(db, worker, monkeypatch):
    program, (task,), _ = worker()
    program.process.kill()
    program.wait()
    monkeypatch.setattr(db.backend.store.identity.bonds, "boot_id", "another")
    assert (db.backend.bury(), db.task(task.id).live, locks_beside(db)) == (0, True, [])


def test_a_store_in_memory_and_a_folder_that_cannot_be_written_have_no_lock(db, monkeypatch):
    with relet.connect("sqlite://") as other:
        assert (other.backend.bind(), other.backend.bury()) == (None, 0)
    monkeypatch.setattr(bonds, "INFIX", "-none/")  # root may write everywhere
    assert db.backend.bind() is None


def test_strays_of_processes_that_died_before_they_were_named_are_removed(db):
    stray, young = (Path(f"{db.place}{bonds.INFIX}{name}") for name in ("stray", "young"))
    stray.touch()
    young.touch()
    os.utime(stray, (time.time() - 2 * bonds.STRAY_S,) * 2)
    mine = db.backend.bind().lock
    assert sorted(locks_beside(db)) == sorted([mine, "young"])


@pytest.mark.parametrize("name", ["*.db", "[relet].db"])
def test_strays_are_those_of_a_store_whose_name_is_a_pattern_and_of_no_other(db, tmp_path, name):
    theirs, ours = Path(f"{db.place}{bonds.INFIX}stray"), tmp_path / f"{name}{bonds.INFIX}stray"
    for stray in (theirs, ours):
        stray.touch()
        os.utime(stray, (time.time() - 2 * bonds.STRAY_S,) * 2)
    with relet.connect(f"sqlite:///{tmp_path}/{name}") as odd:
        odd.backend.bind()
    assert (theirs.exists(), ours.exists()) == (True, False)


def test_a_killed_exec_takes_its_whole_group_with_it_and_its_task_passes_on(db, start, url):
    task = db.submit("work", ttl="60s")
    script = "sleep 300 & sleep 300 & echo $$; wait"
    program = start(EXEC, url, "work", json.dumps({}), "sh", "-c", script)
    group = int(program.line())
    try:
        assert len(living_in_group(group)) >= 3
        program.process.kill()
        lease = db.claim("work", wait=WITHIN_S)
        assert (lease.task_id, lease.took_over.reason) == (task.id, "holder_died")
        assert gone(group)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def test_a_program_under_exec_acts_under_the_handle_without_loosening_it(db, start, url):
    db.submit("work", ttl="60s")
    script = (
        "import os, relet, time; relet.connect().lease(os.environ['RELET_HANDLE']).save(1); "
        "print('saved', flush=True); time.sleep(300)"
    )
    program = start(EXEC, url, "work", json.dumps({}), sys.executable, "-c", script)
    assert program.line() == "saved"
    program.process.kill()
    assert db.claim("work", wait=WITHIN_S).took_over.reason == "holder_died"


def test_a_killed_warden_is_replaced(start):
    program = start(PROGRAMS / "warded.py")
    group, warden = (int(word) for word in program.line().split())
    os.kill(warden, signal.SIGKILL)
    program.tell("go on")
    assert program.line() == "watched again"
    program.process.kill()
    assert gone(group)


def test_a_killed_warden_is_replaced_as_soon_as_a_process_can_be_had(monkeypatch, caplog):
    warden, refused = Warden(), []
    first = warden.pid
    with monkeypatch.context() as patched:

        def refuse():
            refused.append(1)
            raise BlockingIOError(11, "Resource temporarily unavailable")

        patched.setattr(Warden, "_start", staticmethod(refuse))
        patched.setattr(warden_room, "AGAIN_S", 0.01)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: len(refused) > 1)
    eventually(lambda: warden.pid != first)
    assert "can be started; again soon" in caplog.text
    warden.close()


def test_a_warden_ends_at_the_close_though_a_fork_holds_its_pipe():
    warden = Warden()
    process, fork = warden._process, multiprocessing.get_context("fork").Process(target=time.sleep, args=(300,))
    fork.start()
    try:
        warden.close()
        assert process.wait(timeout=15) == 0
    finally:
        fork.kill()
        fork.join()
