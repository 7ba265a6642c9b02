"""Between a client and its store: counts commits, writes them into the trace, and does what the plan says."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from relet.core import payload
from relet.core.again import again
from relet.core.backend import Backend, OwnTransaction, Watch
from relet.core.bond import Bond
from relet.core.catalog import BY_REQUEST
from relet.core.errors import Error, OutcomeUnknown, Unavailable
from relet.core.model import Grant
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.prune import Prune
from relet.core.rules.submit import Submit
from relet.core.rules.sweep import Sweep
from relet.core.upkeep import BackedUp, Verified
from relet.testing.crash.plan import BEFORE, TRANSACTION, Action, Fault
from relet.testing.crash.trace import Ack, Granted, Struck, Trace


class Interceptor:
    """A backend that answers as the one inside does, and lets one fault happen on the way."""

    answers_side_by_side: Final = False
    """So that requests have one order, which the plan counts in."""

    def __init__(self, inner: Backend, trace: Trace, fault: Fault | None, line: socket.socket) -> None:
        self._inner = inner
        self._trace = trace
        self._fault = fault
        self._line = line
        self._lock = threading.Lock()
        self._granted = False

    @property
    def place(self) -> str:
        """As inside."""
        return self._inner.place

    @property
    def tenant(self) -> str:
        """As inside."""
        return self._inner.tenant

    @property
    def url(self) -> str:
        """As inside."""
        return self._inner.url

    def call(self, ask: Any, *, patience_ms: int | None = None) -> Any:
        """The answer to one request; a request that is committed durably is a point of the plan."""
        operation = BY_REQUEST[type(ask)]
        if not operation.writes or not operation.durable or isinstance(ask, (Sweep, Prune)):
            return self._inner.call(ask, patience_ms=patience_ms)
        # A claim that finds nothing commits nothing, and how often a worker looks depends on time alone.
        if not isinstance(ask, Claim):
            self._before()
        since = self._trace.size()
        answer = self._inner.call(ask, patience_ms=patience_ms)
        if isinstance(ask, Claim) and not answer:
            return answer
        granted = _grants(ask, answer)
        n = self._trace.commit(operation.name, _label(ask), since, _acks(ask, answer), granted)
        action = self._after(n)
        if action is Action.REPEAT:
            answer = self._inner.call(again(ask), patience_ms=patience_ms)
        if granted and not self._granted:
            self._granted = True
            self._line.send(b"g")
        return answer

    def call_within(self, transaction: Any, ask: Any) -> Any:
        """As inside; the transaction around it is the point."""
        return self._inner.call_within(transaction, ask)

    @contextmanager
    def transaction(self, seconds: float) -> Iterator[OwnTransaction]:
        """As inside; its commit is a point of the plan."""
        since = self._trace.size()
        with self._inner.transaction(seconds) as own:
            yield own
            self._before()
        self._after(self._trace.commit(TRANSACTION, "", since, [], []))

    def bind(self) -> Bond | None:
        """As inside."""
        return self._inner.bind()

    def vouch(self, lock: str) -> None:
        """As inside."""
        self._inner.vouch(lock)

    def bury(self) -> int:
        """As inside."""
        return self._inner.bury()

    def wait_for_change(self, seconds: float) -> None:
        """As inside."""
        self._inner.wait_for_change(seconds)

    def watch(self) -> Watch:
        """As inside."""
        return self._inner.watch()

    def verify(self, exists: Callable[[str], bool] | None = None) -> Verified:
        """As inside."""
        return self._inner.verify(exists)

    def backup(self, to: str, exists: Callable[[str], bool] | None = None) -> BackedUp:
        """As inside."""
        return self._inner.backup(to, exists)

    def close(self) -> None:
        """As inside."""
        self._inner.close()

    def _before(self) -> None:
        action = self._strike(self._trace.commits + 1, before=True)
        if action is Action.AWAY:
            raise Unavailable("a crash test keeps the store away from this request; nothing was written")

    def _after(self, n: int) -> Action | None:
        action = self._strike(n, before=False)
        if action is Action.DROP:
            raise OutcomeUnknown("a crash test has lost the reply to this request; it was committed")
        return action

    def _strike(self, n: int, *, before: bool) -> Action | None:
        """Do what the plan says for the n-th commit; killed, this does not return, and frozen, only once woken."""
        with self._lock:
            fault = self._fault
            if fault is None or (fault.action in BEFORE) is not before or n < fault.at:
                return None
            self._fault = None
            self._trace.add(Struck(os.getpid(), str(fault)))
        if fault.action in (Action.KILL_BEFORE, Action.KILL_AFTER):
            self._stop(signal.SIGKILL)
        elif fault.action in (Action.FREEZE_BEFORE, Action.FREEZE_AFTER):
            self._stop(signal.SIGSTOP)
        return fault.action

    def _stop(self, number: signal.Signals) -> None:
        sys.stderr.flush()
        os.killpg(0, number)
        # The signal may reach another thread first; this one goes no further until it is told.
        self._line.recv(1)


def _grants(ask: Any, answer: Any) -> list[Granted]:
    grants: list[Grant] | Error = []
    if isinstance(ask, Claim):
        grants = answer
    elif isinstance(ask, Complete):
        grants = answer.grants
    return [] if isinstance(grants, Error) else [Granted(one.handle.task_id, one.handle.token) for one in grants]


def _acks(ask: Any, answer: Any) -> list[Ack]:
    """What the store said it had written, for which lease."""
    verb = BY_REQUEST[type(ask)].name
    if isinstance(ask, Complete):
        return [
            Ack(verb, item.handle.task_id, item.handle.token, digest=_digest(item.result))
            for item, outcome in zip(ask.completions, answer.outcomes, strict=True)
            if not isinstance(outcome, Error)
        ]
    if isinstance(ask, Submit):
        handle = ask.under
        task_id, token = ("", 0) if handle is None else (handle.task_id, handle.token)
        return [Ack(verb, task_id, token, slot=task.id) for task in answer]
    handle = getattr(ask, "handle", None)
    if handle is None:
        return []
    facts: dict[str, Any] = {"name": getattr(ask, "name", "")}
    if verb == "save":
        facts |= {"n": answer.version, "digest": _digest(ask.value)}
    elif verb == "keep_step":
        facts |= {"slot": answer.slot, "digest": _digest(answer.value)}
    elif verb == "attach":
        facts |= {"digest": answer.sha256}
    elif verb == "start_effect":
        facts |= {"slot": answer.id, "n": answer.attempt}
    elif verb == "end_effect":
        facts |= {"slot": ask.effect_id, "n": ask.attempt, "digest": str(answer.state)}
    return [Ack(verb, handle.task_id, handle.token, **facts)]


def _digest(raw: Any) -> str:
    text = bytes(raw).decode()
    return "" if payload.is_filed(text.encode()) else payload.digest(text)


def _label(ask: Any) -> str:
    return getattr(ask, "name", "") or getattr(ask, "queue", "")
