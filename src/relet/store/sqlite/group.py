"""Group commit: callers of one process that would wait for each other are answered in one transaction.

Whoever gets the lane leads: after its own work it does that of all who wait, each within a savepoint of its own and
with the clock read anew, and commits once. Nobody is told anything before that. A lone caller meets none of this.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar, cast

import apsw

from relet.core.errors import Error
from relet.store.sqlite.gate import Gate
from relet.store.sqlite.lane import (
    FAULTS,
    PAUSE_S_MIN,
    Fate,
    Lane,
    NotYet,
    busy,
    patience_of,
    pause,
    translated,
    unknown_outcome,
)

A = TypeVar("A")
Work = Callable[[apsw.Connection], A]

MEMBERS_MAX: Final = 64
SECONDS_MAX: Final = 0.01
"""A group takes nobody in after this: other processes wait for it too."""
LOOK_EVERY_S: Final = 0.05
"""Who waits is woken; this is for the case that an interrupt kept somebody from waking it."""


class _Served(Exception):
    """Somebody else did this caller's work while it waited for the lane."""


class Member(Generic[A]):
    """A caller that waits for the lane, and what came of its work."""

    __slots__ = ("answer", "error", "group", "wake", "work")

    def __init__(self, work: Work[A]) -> None:
        self.work = work
        self.group: Group | None = None
        self.answer: A | None = None
        self.error: Exception | None = None
        self.wake = threading.Lock()
        self.wake.acquire()

    def rouse(self) -> None:
        """Have it look again."""
        with suppress(RuntimeError):  # roused already, and not awake yet
            self.wake.release()


class Group:
    """Those in one transaction besides its leader."""

    __slots__ = ("_begin", "_line", "_own", "fate", "members")

    def __init__(self, line: deque[Member[Any]], begin: str, own: Member[Any] | None) -> None:
        self._line = line
        self._begin = begin
        self._own = own
        self.members: list[Member[Any]] = []
        self.fate = Fate.OPEN

    def enter(self) -> None:
        """The lane is the leader's: nobody else does its work from here on."""
        if self._own is None:
            return
        try:
            self._line.remove(self._own)
        except ValueError:
            if self._own.group is not None:
                raise _Served from None

    def come_along(self, cursor: apsw.Cursor) -> None:
        """Do the work of whoever waits by now, or begins to while this lasts."""
        line = self._line
        if not line:
            return
        until = time.monotonic() + SECONDS_MAX
        while line and len(self.members) < MEMBERS_MAX - 1 and time.monotonic() < until:
            try:
                member = line.popleft()
            except IndexError:
                return  # it gave up waiting just now
            self.members.append(member)
            member.group = self
            self._do(member, cursor)

    def _do(self, member: Member[Any], cursor: apsw.Cursor) -> None:
        connection = cursor.connection
        try:
            cursor.execute(self._begin)
            member.answer = member.work(connection)
            cursor.execute("RELEASE member")
        except Exception as wrong:  # noqa: BLE001 - it is the member's, and raised where it waits
            # Where the engine ended the transaction by itself this fails too: all is undone, and each goes alone.
            cursor.execute("ROLLBACK TO member; RELEASE member")
            member.error = translated(wrong) if isinstance(wrong, FAULTS) else wrong


class SharedLane(Lane):
    """A lane whose callers share a transaction where they would wait for each other."""

    def __init__(
        self, name: str, setup: Callable[[], apsw.Connection], read_first: str, gate: Gate | None = None
    ) -> None:
        """`read_first` is executed at the beginning of each work, which finds its answer on the cursor."""
        super().__init__(name, setup, gate)
        self._begin = f"BEGIN IMMEDIATE; {read_first}"
        self._begin_member = f"SAVEPOINT member; {read_first}"
        self._line: deque[Member[Any]] = deque()
        self._heir: Member[Any] | None = None
        """The one of the line that waits at the lane's lock itself; two of them would do no harm."""

    def share(self, work: Work[A], patience_ms: int | None = None) -> A:
        """As `transact`; where others wait too, all are answered in one transaction. Raises `OutcomeUnknown` too."""
        patience_s = patience_of(patience_ms)
        try:
            return self._lead(work, 0.0, patience_s)
        except NotYet as not_yet:
            by_thread = not_yet.by_thread
        member = Member(work)
        self._line.append(member)
        try:
            return self._wait(member, patience_s, by_thread=by_thread)
        finally:
            self._leaves(member)
            if self._heir is member:
                self._heir = None
            self._pass_on()

    def abandon(self) -> None:
        """Also: in a forked child nobody waits, for the other threads are not there."""
        super().abandon()
        self._line.clear()
        self._heir = None

    def _lead(self, work: Work[A], wait_s: float, gate_s: float, own: Member[A] | None = None) -> A:
        """Do this caller's work, and that of whoever waits, in one transaction; within `gate_s` in all."""
        until = time.monotonic() + gate_s
        group = Group(self._line, self._begin_member, own)
        try:
            return self.attempt(self._begin, work, wait_s, gate_s, group)
        except NotYet as not_yet:
            if own is not None and not not_yet.by_thread:
                self._line.appendleft(own)
            raise
        except Error:
            # With company its own work had been done; what came after it failed, and all was undone.
            if not group.members or group.fate is not Fate.UNDONE:
                raise
        finally:
            for member in group.members:
                member.rouse()
            if own is None and self._line:
                self._pass_on()
        return self._alone(work, until)

    def _wait(self, member: Member[A], patience_s: float, *, by_thread: bool) -> A:
        """Until the work was done in somebody's transaction, or in one that this caller leads itself."""
        until = time.monotonic() + patience_s
        pause_s = PAUSE_S_MIN
        while not self._is_settled(member):
            left_s = max(0.0, until - time.monotonic())
            if not left_s and self._leaves(member):
                raise busy(patience_s, self._connection)
            if by_thread:
                wait_s = self._await_turn(member, left_s)
            else:
                # Without the lane's lock, which other threads and a fork need.
                pause_s, wait_s = pause(pause_s), 0.0
            if member.group is not None:
                continue
            try:
                return self._lead(member.work, wait_s, left_s, member)
            except NotYet as not_yet:
                by_thread = not_yet.by_thread
            except _Served:
                pass
        return self._outcome(member, until)

    def _await_turn(self, member: Member[Any], left_s: float) -> float:
        """Wait to be roused; answers how long to wait at the lane's lock after that."""
        if self._heir is None:
            self._heir = member
        if self._heir is not member:
            if member.wake.acquire(timeout=min(LOOK_EVERY_S, left_s)):
                return 0.0
            self._heir = member  # whoever was it may have been interrupted
        return left_s

    def _is_settled(self, member: Member[Any]) -> bool:
        """Was the work done, or undone, by somebody else; waits for the end of the transaction that it is in."""
        while (group := member.group) is not None and group.fate is Fate.OPEN:
            if not member.wake.acquire(timeout=LOOK_EVERY_S) and self.lock.acquire(blocking=False):
                # Its leader is gone, interrupted where it could not even say how it ended.
                if group.fate is Fate.OPEN:
                    group.fate = Fate.UNKNOWN
                self.lock.release()
        return group is not None

    def _outcome(self, member: Member[A], until: float) -> A:
        assert member.group is not None, "it is settled"
        if member.group.fate is Fate.UNKNOWN:
            raise unknown_outcome("another request of this process, committed together with it, got no answer")
        if member.group.fate is Fate.UNDONE:
            return self._alone(member.work, until)
        if member.error is not None:
            raise member.error
        return cast("A", member.answer)

    def _alone(self, work: Work[A], until: float) -> A:
        """Once more after an undone group, for as long as its caller still waits."""
        return self.transact(self._begin, work, max(1, int((until - time.monotonic()) * 1_000)))

    def _leaves(self, member: Member[Any]) -> bool:
        """Wait no longer; False when it was not in the line any more."""
        try:
            self._line.remove(member)
        except ValueError:
            return False
        return True

    def _pass_on(self) -> None:
        """Have the next one wait at the lane's lock."""
        if self._heir is None:
            with suppress(IndexError):
                self._line[0].rouse()
