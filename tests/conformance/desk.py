"""Where verbs of one client are carried out, in this process or in another; leases go by their handles."""

import io
import pickle
import subprocess
import sys
import threading
import traceback
from pathlib import Path

from relet.client.blocking_lease import Lease
from relet.testing import Clock
from relet.testing.stores import open_store

ROOT = Path(__file__).parents[2]
FACTS = (
    "task_id", "token", "attempt", "holder", "input", "handle", "labels", "queue", "kind", "took_over", "ttl",
    "expires_in", "renew_by", "last_heartbeat", "status",
)  # fmt: skip


class ByHandle(str):
    """A lease, on its way between processes."""

    __slots__ = ()


class Desk:
    """Carries out the verbs of a client in this very process."""

    def __init__(self, folder, clock, tenant="default"):
        self.client = open_store(folder, clock, tenant=tenant)
        self._granted = {}

    def run(self, verb, args, named):
        """A verb of the client, or of the lease whose handle comes first."""
        if isinstance(verb, tuple):
            handle, name = verb
            done = getattr(self.lease(handle), name)
        else:
            done = self.client.backend.call if verb == "call" else getattr(self.client, verb)
        return self._outward(done(*map(self._inward, args), **{key: self._inward(named[key]) for key in named}))

    def close(self):
        self.client.close()

    def lease(self, handle):
        # The very lease if it was granted here, so that a following claim knows what was claimed before.
        return self._granted.get(handle) or self.client.lease(str(handle))

    def same_lease(self, handle):
        """As `lease`, and the same object each time: what ends it must be heard by a block of it."""
        return self._granted.setdefault(handle, self.lease(handle))

    def _inward(self, value):
        if isinstance(value, ByHandle):
            return self.lease(value)
        if type(value) in (list, tuple) and any(isinstance(item, ByHandle) or is_pair(item) for item in value):
            return type(value)(map(self._inward, value))
        return value

    def _outward(self, answer):
        if isinstance(answer, Lease):
            self._granted[answer.handle] = answer
            return {name: getattr(answer, name) for name in FACTS}
        if isinstance(answer, io.IOBase):
            with answer:
                return io.BytesIO(answer.read())
        return [self._outward(item) for item in answer] if isinstance(answer, list) else answer


def is_pair(item):
    return type(item) is tuple and len(item) == 2 and isinstance(item[0], ByHandle)


class Process:
    """Another process with desks in it; one call at a time crosses the pipe."""

    def __init__(self):
        self._child = subprocess.Popen(
            [sys.executable, "-c", "from tests.conformance import desk; desk.serve()"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.lock = threading.Lock()

    def ask(self, *message):
        with self.lock:
            return self.ask_locked(*message)

    def ask_locked(self, *message):
        """The answer over the pipe; the caller holds the lock."""
        self._child.stdin.write(pickle.dumps(message))
        self._child.stdin.flush()
        raised, answer = pickle.load(self._child.stdout)
        if raised:
            raise answer
        return answer

    def close(self):
        self._child.stdin.close()
        self._child.wait(30)
        self._child.stdout.close()


def serve():
    """Answer calls from stdin on stdout until the pipe ends."""
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    desks = {}
    while True:
        try:
            what, key, *rest = pickle.load(incoming)
        except EOFError:
            return
        try:
            answer = False, _serve_one(desks, what, key, rest)
        except BaseException as error:
            error.add_note("".join(traceback.format_exception(error)))
            answer = True, error
        outgoing.write(pickle.dumps(answer))
        outgoing.flush()


def _serve_one(desks, what, key, rest):
    match what:
        case "open":
            folder, clock_path = rest
            desks[key] = Desk(folder, Clock(clock_path))
            return None
        case "close":
            return desks.pop(key).close()
        case _:
            return desks[key].run(*rest)
