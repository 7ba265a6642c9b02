"""Two processes on one file: the verbs of a client are carried out by one and by the other in turn."""

from contextlib import contextmanager
from functools import cached_property
from itertools import count

import apsw

from relet.testing import Clock
from tests.conformance.desk import ByHandle, Desk
from tests.conformance.on_sqlite import SqliteRoute

NUMBERS = count()
AT_HOME = {"run", "transaction"}


class Turns:
    """A client whose every call goes to the process that did not have the one before."""

    def __init__(self, route, *, remote_first):
        self._route, self._remote_next = route, remote_first

    def __getattr__(self, verb):
        if verb == "watch":  # an iterator cannot cross the pipe
            return self._route.desk.client.watch
        return lambda *args, **named: self.carry_out(verb, args, named)

    def carry_out(self, verb, args=(), named=None, *, at=None):
        """Run a verb at the process whose turn it is, or at the one named."""
        named = {key: crossing(item) for key, item in (named or {}).items()}
        if isinstance(named.get("tx"), apsw.Connection):
            at = "local"  # what is open here is open nowhere else
        remote = self._remote_next if at is None else at == "remote"
        self._remote_next = not remote
        where, answer = self._route.run(remote, verb, [crossing(item) for item in args], named)
        return self._clothed(answer, where)

    def at_home(self, handle):
        """The lease of a handle, in this process."""
        return self._route.desk.same_lease(handle)

    def _clothed(self, answer, where):
        if isinstance(answer, list):
            return [self._clothed(item, where) for item in answer]
        return Shared(self, answer, where) if isinstance(answer, dict) and "handle" in answer else answer


class Shared:
    """A lease with the facts of its grant, whose verbs are carried out in turns."""

    def __init__(self, client, facts, where):
        self._client, self._facts, self._where = client, facts, where
        self._at = None

    def __getattr__(self, name):
        if name in self._facts:
            return self._facts[name]
        if name in AT_HOME:  # a block cannot cross the pipe, and what ends its lease must be heard there
            self._at = "local"
            return getattr(self._client.at_home(self.handle), name)

        def verb(*args, **named):
            at = self._where if named.get("claim_next") else self._at
            return self._client.carry_out((ByHandle(self.handle), name), args, named, at=at)

        return verb


def crossing(value):
    """An argument as it crosses the pipe."""
    if isinstance(value, Shared):
        return ByHandle(value.handle)
    if type(value) in (list, tuple) and any(isinstance(item, Shared) or is_pair(item) for item in value):
        return type(value)(map(crossing, value))
    return value


def is_pair(item):
    return type(item) is tuple and len(item) == 2 and isinstance(item[0], Shared)


class TwoProcesses(SqliteRoute):
    def __init__(self, folder, process):
        path = folder / "clock"
        super().__init__(folder, Clock(path))
        self._process, self._key = process, next(NUMBERS)
        self.desk = Desk(folder, self.clock)
        self.opened(self.desk)
        self._process.ask("open", self._key, folder, path)
        self._at_home = False
        self.db = Turns(self, remote_first=False)
        self.other = Turns(self, remote_first=True)

    @cached_property
    def stranger(self):
        return self.opened(Desk(self.folder, self.clock, tenant="elsewhere").client)

    def run(self, remote, verb, args, named):
        """The answer, and which process gave it: the other one, unless it is in the middle of a call."""
        if remote and not self._at_home and self._process.lock.acquire(blocking=False):
            try:
                return "remote", self._process.ask_locked("run", self._key, verb, args, named)
            finally:
                self._process.lock.release()
        return "local", self.desk.run(verb, args, named)

    def call(self, ask):
        return self.db.carry_out("call", [ask])

    @contextmanager
    def locked(self):
        self._at_home = True
        try:
            with self.locked_against(self.desk.client) as somebody_waits:
                yield somebody_waits
        finally:
            self._at_home = False

    def close(self):
        super().close()
        self._process.ask("close", self._key)
