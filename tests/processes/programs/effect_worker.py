"""Work until nothing is ready, with effects on another service: effect_worker.py FOLDER PORT

POINT names where this process is killed: `sending` and `received` by itself, around its request; `during` by the
service, which has applied it and not answered. With `freeze` and `drop` the service stops the process there, or hangs
up. Kills at commits are those of faulty.py.
"""

import http.client
import json
import os
import signal
import sys
from pathlib import Path

import relet
from tests.processes.steering import opened

FOLDER, PORT = Path(sys.argv[1]), int(sys.argv[2])
POINT = os.environ.get("POINT", "")
THEN = {"during": f"kill {os.getpid()}", "freeze": f"freeze {os.getpid()}", "drop": "drop"}
PAYLOAD = {"version": 0, "value": "by relet"}
OFTEN = relet.RetryPolicy(max_attempts=1_000, max_losses=1_000, base="1ms", cap="1ms")
app = relet.App()


def reach(point):
    if point == POINT:
        os.kill(os.getpid(), signal.SIGKILL)


def ask(method, path, headers=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def sender(kind):
    def send(payload, effect):
        reach("sending")
        headers = {**effect.headers, "If-Match": str(payload["version"])}
        if not effect.repeated and POINT in THEN:
            headers["Relet-Then"] = THEN[POINT]
        status, answer = ask("POST", f"/{kind}", headers, payload)
        reach("received")
        if status == 412:
            if answer["value"] != payload["value"]:
                raise relet.NotApplied("somebody else was first")
            return answer  # written by an earlier try
        return answer

    return send


def look(payload, effect):
    status, found = ask("GET", f"/queryable/{effect.key}")
    return found if status == 200 else None


CONTRACTS = {
    "keyed": relet.Keyed(retention="24h"), "natural": relet.Natural(), "conditional": relet.Conditional(),
    "queryable": relet.Queryable(look), "opaque": relet.Opaque(),
}  # fmt: skip


def one(run, kind):
    return run.effect(kind, PAYLOAD, sender(kind), contract=CONTRACTS[kind], timeout="30s")


def handler(kind):
    return lambda run: one(run, kind)


for contract in CONTRACTS:
    app.task(contract, queue="work", retry=OFTEN)(handler(contract))


@app.task("all", queue="work", retry=OFTEN)
def all_of_them(run):
    found = {}
    for kind in CONTRACTS:
        run.step("note", lambda kind=kind: kind)
        found[kind] = one(run, kind)
    return found


STEPS = 5


@app.task("steps", queue="work", retry=OFTEN)
def steps(run):
    """Each call of a step is a line of a file, so that calls are counted whatever becomes of the process."""

    def call(n):
        with (FOLDER / "calls").open("a") as file:
            file.write(f"{n}\n")
        reach(f"step {n}")
        return n * n

    return [run.step("square", call, n) for n in range(1, STEPS + 1)]


with opened(FOLDER, f"worker-{os.getpid()}") as db:
    sys.stdout.write("ready\n")
    app.run_until_idle(db)
