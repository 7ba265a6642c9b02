"""A heartbeat beside the worker: it keeps what a busy interpreter cannot, and never what nobody works on."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

import relet
from relet.client.beside import sidecar as beside
from relet.client.beside.sidecar import Sidecar
from tests.alive import is_gone
from tests.processes.freezing import freeze, thaw
from tests.processes.recording import gaps_s, record_beats
from tests.waiting import eventually

PROGRAM = Path(__file__).parent / "programs" / "held_gil.py"


@pytest.mark.slow
def test_hb_01_work_that_holds_the_gil_for_three_ttls_keeps_its_lease_and_runs_once(db, start, url):
    record_beats(db)
    task = db.submit("work", kind="work")
    start(PROGRAM, url, "process")
    assert db.result(task.id, wait=20) == "done"
    found = db.task(task.id)
    assert (found.attempt, found.losses) == (1, 0)
    assert [event.kind for event in db.history(task.id)] == ["submitted", "claimed", "completed"]
    assert len(gaps_s(db, found.token)) >= 6


@pytest.mark.slow
def test_hb_01_with_the_thread_alone_it_is_lost_and_that_is_said(db, start, url):
    task = db.submit("work", kind="work")
    program = start(PROGRAM, url, "thread")
    assert program.line() == "begins"
    lease = db.claim("work", wait=10, ttl="60s")
    assert (lease.task_id, lease.attempt, lease.took_over.reason) == (task.id, 2, "expired")
    eventually(lambda: "lease lost" in program.errors or db.rejections(task.id))
    lease.complete("by the next one")
    assert db.result(task.id) == "by the next one"


@pytest.mark.slow
def test_p12_work_that_holds_the_gil_and_moves_nothing_is_let_go_of(db, start, url):
    task = db.submit("work", kind="work")
    program = start(PROGRAM, url, "process", "1s")
    program.line()
    assert program.line() == "begins"
    lease = db.claim("work", wait=10, ttl="60s")
    assert (lease.task_id, lease.attempt, lease.took_over.reason) == (task.id, 2, "expired")


@pytest.mark.slow
def test_hb_09_a_killed_workers_sidecar_ends_and_the_lease_lapses(db, start, url):
    task = db.submit("work", kind="waits")
    program = start(PROGRAM, url, "process")
    sidecar = int(program.line())
    assert program.line() == "begins"
    program.process.kill()
    program.wait()
    eventually(lambda: is_gone(sidecar), within=1 / 3)
    assert db.claim("work", wait=5, ttl="60s").task_id == task.id


def test_hb_09_the_sidecar_of_a_worker_that_becomes_another_program_ends(db, start, url, tmp_path):
    script = tmp_path / "replaced.py"
    script.write_text(
        "import os, sys, relet\n"
        "from relet.client.beside.sidecar import Sidecar\n"
        "sidecar = Sidecar(relet.connect(sys.argv[1]).backend, None)\n"
        "print(sidecar.process.pid, flush=True)\n"
        "input()\n"
        "os.execv(sys.executable, [sys.executable, '-c', 'input()'])\n"
    )
    program = start(script, url)
    sidecar = int(program.line())
    assert not is_gone(sidecar)
    program.tell("go")
    eventually(lambda: is_gone(sidecar))
    assert program.process.poll() is None


@pytest.mark.slow
def test_a_stopped_workers_sidecar_is_silent(db, start, url):
    task = db.submit("work", kind="waits")
    program = start(PROGRAM, url, "process")
    sidecar = int(program.line())
    assert program.line() == "begins"
    freeze(program, db)
    lease = db.claim("work", wait=5, ttl="60s")
    assert (lease.task_id, lease.attempt, is_gone(sidecar)) == (task.id, 2, False)
    thaw(program)


def outlives_its_sidecar(db, program, task):
    sidecar = int(program.line())
    assert program.line() == "begins"
    os.kill(sidecar, signal.SIGKILL)
    eventually(lambda: is_gone(sidecar))
    token = db.task(task.id).token
    eventually(lambda: len(gaps_s(db, token)) >= 6)
    program.tell("go on")
    assert db.result(task.id, wait=10) == "done"
    assert db.task(task.id).attempt == 1


@pytest.mark.slow
def test_a_killed_sidecar_is_replaced_and_nothing_is_lost_meanwhile(db, start, url):
    record_beats(db)
    task = db.submit("work", kind="waits")
    outlives_its_sidecar(db, start(PROGRAM, url, "process"), task)


def test_a_sidecar_whose_pipe_was_full_is_told_later_all_that_is_true_by_then(db):
    sidecar = Sidecar(db.backend, None)
    os.kill(sidecar.process.pid, signal.SIGSTOP)
    leases = _many(db, 1_000)
    assert len(leases) == 1_000
    for lease in leases:
        lease.belief.beat_every(1)
        sidecar.keep(lease.belief)
    for lease in leases[:100]:
        sidecar.drop(lease.belief)
    renewed = [lease.belief.trust.renewed_ms for lease in leases]
    os.kill(sidecar.process.pid, signal.SIGCONT)

    def have_been_renewed():
        statuses = [lease.status for lease in leases]
        assert set(statuses) == {"held"}
        return [lease.belief.trust.renewed_ms > before for lease, before in zip(leases, renewed, strict=True)]

    eventually(lambda: have_been_renewed() == [False] * 100 + [True] * 900)
    sidecar.close()


def test_a_sidecar_that_does_not_listen_ends_at_the_close(db):
    sidecar = Sidecar(db.backend, None)
    process = sidecar.process
    os.kill(process.pid, signal.SIGSTOP)
    for lease in _many(db, 500):
        sidecar.keep(lease.belief)
    sidecar.close()
    eventually(lambda: is_gone(process.pid))


@pytest.mark.parametrize("wrong", [BlockingIOError(11, "Resource temporarily unavailable"), None])
def test_a_sidecar_that_cannot_be_started_or_is_never_ready_holds_nobody_up(db, monkeypatch, wrong, caplog):
    class Popen(subprocess.Popen):
        def __init__(self, command, **options):
            if wrong is not None:
                raise wrong
            super().__init__(["sleep", "300"], **options)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    monkeypatch.setattr(beside, "START_S", 0.2)
    sidecar = Sidecar(db.backend, None)
    (lease,) = _many(db, 1)
    sidecar.keep(lease.belief)
    assert lease.status == "held"
    if (process := sidecar.process) is not None:
        process.kill()
    sidecar.close()
    assert ("can be started" if wrong else "is not ready") in caplog.text


def _many(db, n):
    db.submit_many("work", [None] * n)
    return [lease for _ in range(-(-n // 100)) for lease in db.claim_many("work", 100, ttl="60s")]


def test_a_store_in_memory_has_no_heartbeat_beside():
    app = relet.App()

    @app.task("work", heartbeat="process")
    def work(run):
        return None

    with relet.connect("sqlite://") as other, pytest.raises(relet.Invalid, match="another process can open"):
        app.run_until_idle(other)
