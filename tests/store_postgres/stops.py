"""Threads that stop where a test wants them to, while it does something else: what comes first is no chance."""

import contextlib
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg

from relet.store.postgres.runner import PostgresRunner
from tests.waiting import Gate, eventually

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


class Slow:
    """A thread that stops, once, as soon as it would call one method."""

    def __init__(self, threads, name):
        self._threads, self._name = threads, name
        self._met, self._gate = Gate(), Gate()

    def begins(self, work, *args, **named):
        """Answers a future, when it has stopped."""

        def run():
            threading.current_thread().stops_at = self
            return work(*args, **named)

        self.future = self._threads.submit(run)
        eventually(lambda: self._met.is_set() or self.future.done())
        assert self._met.is_set(), f"it never came to {self._name}: {self.future.result()}"
        return self.future

    def goes_on(self):
        self._gate.set()

    def meets(self, name):
        if name == self._name and not self._met.is_set():
            self._met.set()
            self._gate.pass_through()


class Stops:
    """Of one test; within it each thread stops where it was told to."""

    def __init__(self, monkeypatch, threads):
        self._monkeypatch, self._threads = monkeypatch, threads
        self._slow = []

    def before(self, owner, name):
        """A thread that stops before a method of ours."""
        before = getattr(owner, name)
        if not any(one._name == name for one in self._slow):
            self._monkeypatch.setattr(owner, name, stopping(before, name))
        self._slow.append(Slow(self._threads, name))
        return self._slow[-1]

    def before_commit(self):
        """When the server has done all that it was sent."""
        return self.before(PostgresRunner, "end")

    def let_all_go(self):
        for one in self._slow:
            one.goes_on()


def stopping(method, name):
    def meet(self):
        if (slow := getattr(threading.current_thread(), "stops_at", None)) is not None:
            if name == "end":
                self._execute("SELECT 1", ()).fetchone()
            slow.meets(name)

    async def asynchronous(self, *args):
        meet(self)
        return await method(self, *args)

    def blocking(self, *args):
        meet(self)
        return method(self, *args)

    return asynchronous if inspect.iscoroutinefunction(method) else blocking


@contextlib.contextmanager
def stops(monkeypatch):
    with ThreadPoolExecutor() as threads:
        made = Stops(monkeypatch, threads)
        try:
            yield made
        finally:
            made.let_all_go()


def until_waiting(url, n=1):
    """So many wait for a lock."""
    with psycopg.connect(url, autocommit=True) as looker:
        eventually(lambda: looker.execute(WAITING).fetchone()[0] >= n)
