"""A holder of one task for each kind of write, stopped before it writes: stopped_worker.py URL

It says of each that it holds it: in a thread (`late`), with a heartbeat `beside` it, or in a child (`apart`). Once
there is a file `go` in the folder $STOPPED_IN it makes each late write by itself, without a look at its lease, and
says what became of it. As a child of `relet exec` it writes under the handle that it was given, too.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import apsw
import msgspec

import relet
from relet.core import border
from relet.core.model import Handle
from relet.core.rules.check import Check
from relet.core.rules.end_effect import EndEffect
from relet.core.rules.progress import Progress
from relet.core.rules.start_effect import StartEffect
from relet.core.rules.step import KeepStep
from relet.core.rules.submit import NewTask, Submit
from relet.core.work import Contract, ContractKind, Outcome
from relet.fences.files import FileFence
from relet.fences.sqlite import SqliteFence

FOLDER = Path(os.environ["STOPPED_IN"])
LATE = msgspec.Raw(b'"late"')
OPAQUE = Contract(kind=ContractKind.OPAQUE)
app = relet.App()


def handle_of(lease) -> Handle:
    return border.handle(lease.handle)


def in_a_transaction(db, lease):
    with lease.transaction() as connection:
        connection.execute("INSERT INTO mine VALUES ('late')")


def into_sqlite(db, lease):
    connection = apsw.Connection(str(FOLDER / "fenced.db"))
    with SqliteFence(connection).write(lease.task_id, lease.token):
        connection.execute("INSERT INTO landed VALUES ('late')")


def into_a_file(db, lease):
    with FileFence(FOLDER / "files").write(lease.task_id, lease.token) as target:
        target.write(b"late")


def start_effect(db, lease):
    db.backend.call(
        StartEffect(
            handle=handle_of(lease), name="new", payload=LATE, contract=OPAQUE, timeout_ms=1_000, call_id="late"
        )
    )
    (FOLDER / "called").touch()


def end_effect(db, lease):
    (effect,) = db.effects(task_id=lease.task_id)
    db.backend.call(
        EndEffect(
            handle=handle_of(lease),
            effect_id=effect.id,
            attempt=1,
            outcome=Outcome.APPLIED,
            receipt=msgspec.Raw(b"7"),
        )
    )


def step(db, lease):
    db.backend.call(KeepStep(handle=handle_of(lease), name="late", slot="#1", value=LATE))


def check(db, lease):
    db.backend.call(Check(handle=handle_of(lease)))


def progress(db, lease):
    db.backend.call(Progress(handle=handle_of(lease), note="late"))


def child(db, lease):
    db.backend.call(Submit(queue="late", kind="late", tasks=[NewTask(id="late", input=LATE)], under=handle_of(lease)))


WRITES = {
    "renew": lambda db, lease: lease.renew(),
    "save": lambda db, lease: lease.save("late"),
    "step": step,
    "progress": progress,
    "effect start": start_effect,
    "effect end": end_effect,
    "attach": lambda db, lease: lease.attach("late", b"late"),
    "child": child,
    "complete": lambda db, lease: lease.complete("late"),
    "fail": lambda db, lease: lease.fail("late"),
    "release": lambda db, lease: lease.release(),
    "park": lambda db, lease: lease.park("late"),
    "check": check,
    "transaction": in_a_transaction,
    "fence in SQLite": into_sqlite,
    "fence of files": into_a_file,
}


def say(*words):
    os.write(1, (json.dumps(words) + "\n").encode())


def write_late(db, lease, kind):
    """On a thread of its own: nothing there knows of the run, so nothing but store and target can refuse it."""
    try:
        WRITES[kind](db, lease)
        said = "taken"
    except relet.Error as refused:
        said = f"{type(refused).__name__} {refused.detail.get('reason')}"
    except Exception as broken:
        said = repr(broken)
    say(kind, lease.token, said)


def wait_for_go():
    while not (FOLDER / "go").exists():
        time.sleep(0.01)


def waits_and_writes(db, lease, kind):
    if kind == "effect end":
        db.backend.call(
            StartEffect(
                handle=handle_of(lease),
                name="pay",
                payload=LATE,
                contract=OPAQUE,
                timeout_ms=60_000,
                call_id="in time",
            )
        )
    say(kind, lease.token, "held")
    wait_for_go()
    thread = threading.Thread(target=write_late, args=(db, lease, kind))
    thread.start()
    thread.join()


@app.task("late", ttl="1s")
def late(run, kind: str):
    waits_and_writes(run.lease._client, run.lease, kind)


@app.task("beside", ttl="1s", heartbeat="process")
def beside(run, kind: str):
    waits_and_writes(run.lease._client, run.lease, kind)


@app.task("apart", ttl="1s", isolation="process")
def apart(run, kind: str):
    waits_and_writes(run.lease._client, run.lease, kind)


def as_a_child_of_exec(db):
    """Its handle was given to it; the heartbeat is that of exec."""
    lease = db.lease(os.environ["RELET_HANDLE"])
    say("exec", lease.token, "held")
    wait_for_go()
    write_late(db, lease, json.loads(Path(os.environ["RELET_INPUT_FILE"]).read_text(encoding="utf-8"))["kind"])


if __name__ == "__main__":
    with relet.connect(sys.argv[1], holder="stopped") as db:
        if "RELET_HANDLE" in os.environ:
            as_a_child_of_exec(db)
        else:
            with app.worker(db, concurrency=64, signals=True, grace=0) as worker:
                worker.wait()
