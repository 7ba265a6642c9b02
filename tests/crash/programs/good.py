"""An app as it should be: every part of durable work, and an outside world that counts what reaches it."""

import json
import os
from pathlib import Path

import relet

app = relet.App()


def outside(name):
    return Path(os.environ["RELET_CRASH_FOLDER"]) / name


def send(name, key):
    """A service that remembers keys: the same one again is answered as it was the first time."""
    with outside(name).open("a") as file:
        file.write(json.dumps(key) + "\n")
    return {"id": key}


def arrived(name):
    """The check of a queryable service."""
    path = outside(name)
    return {"id": json.loads(path.read_text().splitlines()[0])} if path.exists() else None


@app.task("short")
def short(run: relet.Run, topic: str) -> dict:
    found = run.step("search", lambda text: text.upper(), topic)
    run.save({"found": found})
    sent = run.effect("mail", {"to": "ann"}, lambda payload, effect: send("mail", effect.key))
    return {"found": found, "sent": bool(sent)}


@app.task("far")
def far(run: relet.Run, topic: str) -> dict:
    """All but a transaction of its own, which is on the database that nobody reaches through a service."""
    found = run.step("search", lambda text: text.upper(), topic)
    page = run.load("pages") or 0
    while page < 2:
        page += 1
        run.save(page, "pages")
    accepted = run.approval("publish", ask={"draft": found}).accepted
    run.effect("put", {"page": 1}, lambda payload, effect: send("put", effect.key), contract=relet.Natural())
    run.effect(
        "order",
        {"item": "x"},
        lambda payload, effect: send("order", effect.key),
        contract=relet.Keyed(retention="24h"),
    )
    run.effect(
        "invoice", {"sum": 3}, lambda payload, effect: send("invoice", effect.key), timeout="10s",
        contract=relet.Queryable(lambda payload, effect: arrived("invoice")),
    )  # fmt: skip
    run.effect("mail", {"to": "ann"}, lambda payload, effect: send("mail", effect.key))
    run.sleep("1d")
    word = run.receive("go")
    run.submit("index", "child", {"number": 1})
    run.attach("page.txt", b"hello")
    return {"found": found, "accepted": accepted, "word": word}


@app.task("long")
def long(run: relet.Run, topic: str) -> dict:
    result = far(run, topic)
    with run.transaction() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS pages (task TEXT PRIMARY KEY)")
        # No parameter: each engine has marks of its own for them.
        connection.execute(f"INSERT INTO pages VALUES ('{run.task_id}') ON CONFLICT DO NOTHING")
    return result


@app.task("child")
async def child(run: relet.AsyncRun, number: int) -> int:
    async def add(one: int) -> int:
        return one + 1

    return await run.step("add", add, number)


@app.task("settings")
def settings(run: relet.Run) -> list:
    return [name for name in os.environ if name.startswith("RELET_")]


def sent_once(db, task, folder):
    if (folder / "mail").exists():
        assert len((folder / "mail").read_text().splitlines()) == 1, "mail was sent more than once"
    # Who is stopped in the middle of a call goes on with it when it wakes; the other side knows the key by then.
    for name in ("order", "put", "invoice"):
        if (folder / name).exists():
            assert len(set((folder / name).read_text().splitlines())) == 1, f"{name} was sent under several keys"
