"""Apps with one mistake each, of the kind that no test without a crash finds."""

import os
import random
import time
import uuid
from pathlib import Path

import relet

app = relet.App()


def note(text):
    with (Path(os.environ["RELET_CRASH_FOLDER"]) / "notes").open("a") as file:
        file.write(f"{text}\n")


@app.task("outside_of_a_step")
def outside_of_a_step(run: relet.Run) -> str:
    note(run.task_id)
    return run.step("work", lambda: "done")


def noted_once(db, task, folder):
    lines = (folder / "notes").read_text().splitlines()
    assert len(lines) == 1, f"it was written down {len(lines)} times"


@app.task("fresh_key")
def fresh_key(run: relet.Run) -> str:
    def order(payload, effect):
        key = uuid.uuid4().hex  # and effect.key is not looked at
        note(key)
        return {"order": key}

    run.effect("order", {"item": "x"}, order, contract=relet.Keyed(retention="24h"))
    return "ordered"


@app.task("shuffled")
def shuffled(run: relet.Run) -> int:
    pages = ["a", "b", "c", "d"]
    random.shuffle(pages)
    return len([run.step("read", lambda page: page * 2, page) for page in pages])


@app.task("by_a_set")
def by_a_set(run: relet.Run) -> int:
    pages = {"alpha", "beta", "gamma", "delta"}
    return len([run.step("read", lambda page: page * 2, page) for page in pages])


@app.task("catches_everything")
def catches_everything(run: relet.Run) -> str:
    try:
        run.save("done")
    except BaseException:
        return "something went wrong, never mind"
    return "done"


@app.task("catches_the_wait")
async def catches_the_wait(run: relet.AsyncRun) -> str:
    try:
        return str((await run.approval("publish")).accepted)
    except BaseException:
        return "nobody answered"


@app.task("forgets")
def forgets(run: relet.Run) -> int:
    seen = []  # and after a takeover it is empty
    for page in range(run.load() or 0, 3):
        seen.append(page)
        run.save(page + 1)
    return len(seen)


@app.task("gives_up")
def gives_up(run: relet.Run) -> str:
    try:
        run.save("done")
    except relet.Error:
        raise relet.Permanent("the store hiccuped") from None
    return "done"


@app.task("leaves")
def leaves(run: relet.Run) -> str:
    if run.attempt > 1:
        os._exit(3)
    return run.step("work", lambda: "done")


@app.task("locks")
def locks(run: relet.Run) -> str:
    """Not broken: it keeps the store's lock for a while, which a process that is frozen then keeps for ever."""
    with run.transaction() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS pages (n INTEGER)")
        time.sleep(0.4)
    return "done"


@app.task("hangs")
def hangs(run: relet.Run) -> None:
    while True:
        time.sleep(0.05)


@app.task("fails")
def fails(run: relet.Run) -> None:
    raise relet.Permanent("nothing to be done")


@app.task("unsure")
def unsure(run: relet.Run) -> str:
    """Not broken: its effect was called and nobody knows what came of it."""

    def mail(payload, effect):
        note("mail")
        raise TimeoutError("no answer")

    run.effect("mail", {"to": "ann"}, mail)
    return "sent"


@app.task("mails")
def mails(run: relet.Run) -> str:
    run.effect("mail", {"to": "ann"}, lambda payload, effect: note("mail"))
    return "sent"


@app.task("saves")
def saves(run: relet.Run) -> str:
    run.save(1)
    run.save(2)
    return "saved"
