"""A client made in the parent, used in a forked child: forked.py URL SCENE

`work`: the parent keeps a lease of its own; the child claims, works for three ttls and completes.
`locks`: another thread of the parent holds each lock of relet in turn while it forks; the child claims and renews.
`transaction`: another thread of the parent is within a transaction while it forks.
"""

import os
import sys
import threading
import time

import relet
from relet.core.trust import Status
from relet.store.sqlite import engine

engine.FORK_WAIT_S = 0.3  # how long a fork waits for locks that are not going to be free
LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Condition)
url, scene = sys.argv[1:]


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def work(db):
    lease = db.claim("work", ttl=1)
    with lease.keep():
        until = time.monotonic() + 3 * lease.ttl
        while time.monotonic() < until:
            assert lease.status is Status.HELD
            lease.lost.wait(0.05)
    lease.complete(os.getpid())
    say("child done")


def claim_and_renew(db):
    begun = time.monotonic()
    said = "done"
    try:
        lease = db.claim("work")
        with lease.keep():
            lease.renew()
        lease.complete("child")
    except relet.Error as refused:
        said = refused.code
    say("child", said, time.monotonic() - begun)


def in_child(db, what):
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        what(db)
        code = 0
    finally:
        os._exit(code)


def locks_of(root, path, seen):
    """Every lock that an object of relet's holds, and those of the classes of its modules."""
    for name, value in list(getattr(root, "__dict__", {}).items()):
        where = f"{path}.{name}"
        if isinstance(value, LOCKS):
            yield where, value
        elif type(value).__module__.startswith("relet") and id(value) not in seen:
            seen.add(id(value))
            yield from locks_of(value, where, seen)


def all_locks(db):
    yield from locks_of(db, "db", set())
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith("relet"):
            continue
        for name, value in list(vars(module).items()):
            if isinstance(value, LOCKS):
                yield f"{module_name}.{name}", value
            elif isinstance(value, type) and value.__module__ == module_name:
                yield from locks_of(value, f"{module_name}.{name}", set())


def while_another_thread(enters, forked):
    inside, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=enters, args=(inside, done))
    thread.start()
    inside.wait(10)
    pid = forked()
    done.set()
    thread.join()
    return pid


def status_of(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def hold(lock):
    def enters(inside, done):
        with lock:
            inside.set()
            done.wait(30)

    return enters


def be_within_a_transaction(inside, done):
    def wait(_connection):
        inside.set()
        done.wait(30)

    if url.startswith("sqlite:"):
        db.backend.store._write.transact("BEGIN IMMEDIATE", wait)
    else:
        with db.backend.transaction(60) as own:
            wait(own.connection.execute("SELECT 1"))


with relet.connect(url, holder="forking") as db:
    own = db.claim("own", ttl=30)
    own.load()
    with own.keep():
        own.renew()
        if scene == "work":
            say("status", status_of(in_child(db, work)))
        elif scene == "transaction":
            say(
                "status",
                status_of(while_another_thread(be_within_a_transaction, lambda: in_child(db, claim_and_renew))),
            )
        else:
            for path, lock in all_locks(db):
                say("lock", path)
                say("status", status_of(while_another_thread(hold(lock), lambda: in_child(db, claim_and_renew))))
        own.save("still here")
    own.complete("parent")
    say("parent done")
