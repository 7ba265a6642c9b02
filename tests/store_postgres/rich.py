"""A store with something of everything in it, brought there by verbs alone, and with no lease that lives."""

import contextlib
import os

import relet
from relet.core.access import Role, Scope
from relet.core.rules.audit import Act, AddAudit
from relet.core.rules.keys import MakeKey, NoteUses, RevokeKey

LARGE = "x" * (300 << 10)
"""Kept as a file beside the store."""


def fill(move):
    """Answers handles that were given out, by what became of them."""
    with move.source(holder="A") as db, move.source("elsewhere", holder="B") as other:
        handles = {"done": finished(db), "lost": lost(db)}
        submitted(db)
        durable(db)
        effects(db)
        knobs(db)
        pruned(db, move.clock)
        keys(db)
        other.submit("reports", {"topic": LARGE}, id="t-1", labels={"who": "ü\u2028\\N"})
        other.queue("reports", paused=True, retention="30d")
    return handles


def finished(db):
    db.submit("reports", {"topic": LARGE}, id="done", labels={"a": "b"}, priority=3, ttl=60)
    lease = db.claim("reports")
    for version in range(12):
        lease.save({"page": version, "text": "a\nb\tc\\."})
    lease.save(LARGE, "large")
    lease.attach("page", b"<html>" * 10)
    lease.attach("empty", b"")
    lease.attach("huge", os.urandom(9 << 20))
    lease.progress("half")
    db.clock.advance(40)
    lease.renew()
    lease.complete({"ok": True})
    for _ in range(3):
        with contextlib.suppress(relet.Refused):
            lease.fail("too late")
    return lease.handle


def lost(db):
    db.submit("reports", 1, id="lost", exclusive="key", max_losses=3, ttl=10)
    lease = db.claim("reports")
    db.clock.advance(20)
    with contextlib.suppress(relet.LeaseLost):
        lease.complete({"late": True})
    db.claim(task_id="lost").fail("no", delay="50m")
    return lease.handle


def submitted(db):
    db.submit_many("plain", [1, 2, 3], ids=["p-1", "p-2", "p-3"])
    db.submit("plain", None, id="soon", delay=600)
    db.submit("plain", None, id="late", delay="3d", deadline=None, timeout="10m", max_hold="1h")
    db.submit("plain", None, id="gone")
    db.cancel("gone", "not needed")
    db.submit("dead", None, id="dead")
    db.claim("dead").fail("no way", retry=False, code="WHY")
    db.submit("dead", None, id="again")
    db.claim("dead").fail("no way", retry=False)
    db.requeue("again")


def durable(db):
    for name in ("open", "decided", "signalled", "asleep"):
        db.submit("flow", {"name": name}, id=name)
        lease = db.claim("flow")
        with contextlib.suppress(relet.Parked), lease.run() as run:
            run.step("search", dict, [("found", name)])
            run.step("price", lambda: 1.5, key="k")
            run.submit("child", "children", {"of": name})
            wait(run, name)
    db.decide("decided", "publish", "edit", value={"by": "hand"})
    db.signal("signalled", "other", 1)
    db.signal("signalled", "other", {"two": 2})


def wait(run, name):
    if name == "signalled":
        run.receive("payment", timeout="5d")
    elif name == "asleep":
        run.sleep("2h")
    else:
        run.approval("publish", ask={"name": name}, timeout="9d", default="deny")


def effects(db):
    db.submit("outside", None, id="outside")
    lease = db.claim("outside", ttl=60)
    with contextlib.suppress(ConnectionError, relet.Error), lease.run() as run:
        keyed = relet.Keyed(retention="24h")
        run.effect("paid", {"n": 1}, lambda payload, effect: {"receipt": payload}, key="charge:1", contract=keyed)
        run.effect("mailed", {"n": 2}, fails, contract=relet.Opaque())
    with contextlib.suppress(relet.Refused):
        lease.release()
    db.submit("outside", None, id="overtaken", ttl=60)
    lease = db.claim("outside")
    with contextlib.suppress(relet.Error, relet.LeaseStopped), lease.run() as run:
        run.effect("late", {"n": 3}, lambda payload, effect: slow(db), contract=relet.Opaque())


def slow(db):
    """The lease lapses meanwhile, and somebody sees it."""
    db.clock.advance(90)
    db.sweep()
    return {"receipt": 3}


def fails(payload, effect):
    raise ConnectionError("no answer")


def knobs(db):
    db.queue("shared", concurrency=2, rate="30/1m")
    for n, share in enumerate(["a", "a", "b", None]):
        db.submit("shared", n, id=f"s-{n}", share=share)
    db.claim("shared").complete()
    db.claim("shared").release(delay=30)


def pruned(db, clock):
    db.submit_many("short", [1, 2, 3], ids=["g-1", "g-2", "g-3"])
    for lease in db.claim_many("short", 3):
        lease.complete(lease.token)
    clock.advance(120)
    assert db.prune("1m", queue="short").count


def keys(db):
    """Good, expired and revoked ones, and what was done with them."""
    for n, (role, options) in enumerate((
        (Role.WORKER, {"queues": ["reports", "ü"]}), (Role.VIEWER, {"expires_ms": 1}), (Role.ADMIN, {}),
        (Role.APPROVER, {"scopes": [Scope.AUDIT], "tenant": "elsewhere"}),
    )):  # fmt: skip
        named = {"tenant": "default", "name": f"n {n}"} | options
        db.backend.operate(MakeKey(id=f"key{n}", digest=f"{n}" * 64, role=role, **named))
    db.backend.operate(NoteUses(ids=["key0"]))
    db.backend.operate(RevokeKey(which="key2"))
    db.backend.operate(AddAudit(acts=[
        Act(key_id="key0", key_name="n 0", tenant="default", operation="submit", outcome="ok", target="t\\N",
            address="::1"),
        Act(key_id=None, key_name=None, tenant=None, operation="claim", outcome="RELET-NO-CREDENTIAL"),
    ]))  # fmt: skip
