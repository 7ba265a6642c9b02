"""A child process in a group of its own, watched until it ends or must end."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from enum import StrEnum
from types import FrameType, TracebackType
from typing import Any, Final, Self

from relet.client.belief import Belief
from relet.core.bond import LOCK_VARIABLE, Bond
from relet.core.errors import LeaseLost
from relet.core.model import LostReason
from relet.worker.warden import Warden

LOST_GRACE_S: Final = 1.0
LOOK_EVERY_S: Final = 0.02
ENDED_ELSEWHERE: Final = (LostReason.CLOSED, LostReason.RELEASED)


HANGUP: Final = getattr(signal, "SIGHUP", None)
WATCHED: Final = tuple(number for number in (signal.SIGTERM, signal.SIGINT, HANGUP) if number is not None)


class Ending(StrEnum):
    """Why the watch over a child ended."""

    EXITED = "exited"
    LOST = "lost"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


class Interrupts:
    """SIGTERM, SIGINT and SIGHUP, noted while a program runs; each wakes whoever waits."""

    def __init__(self) -> None:
        self.seen = 0
        # Not an Event: its lock may be held by the very code that a signal handler interrupts.
        self.changed: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in WATCHED:
                # Ignored by whoever started it, as nohup does: the terminal may go, and the work is to go on.
                if number == HANGUP and signal.getsignal(number) is signal.SIG_IGN:
                    continue
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.seen += 1
        self.changed.put(None)


class Child:
    """One run of a command."""

    def __init__(
        self, command: list[str], environment: dict[str, str], grace_s: float, bond: Bond | None, warden: Warden
    ) -> None:
        if bond is not None:
            environment = {**environment, LOCK_VARIABLE: f"{bond.descriptor}:{bond.lock}"}
        self._process = subprocess.Popen(  # noqa: S603 - the command is the purpose
            command, env=environment, start_new_session=True, pass_fds=() if bond is None else (bond.descriptor,)
        )
        self._warden = warden
        warden.watch(self._process.pid)
        self._grace_s = grace_s

    @property
    def code(self) -> int:
        """The exit code; negative for a signal."""
        assert self._process.returncode is not None, "asked after it ended"
        return self._process.returncode

    def watch(self, belief: Belief, interrupts: Interrupts, timeout_s: float | None) -> Ending:
        """Wait for its end, or bring it about; none of its group is left when this returns."""
        wake = interrupts.changed
        told = self._wake_on(belief, wake)
        threading.Thread(target=self._await_exit, args=(wake,), daemon=True).start()
        until = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        try:
            while True:
                trusted_s = belief.trust.trusted_ms(belief.clock.fast_ms()) / 1_000 or 1.0
                with contextlib.suppress(queue.Empty):
                    wake.get(timeout=min(1.0, trusted_s, max(0.0, until - time.monotonic())))
                ending = self._judge(belief, interrupts, until)
                if ending is not None:
                    return ending
        finally:
            belief.untell(told)
            self._kill_group()

    def _judge(self, belief: Belief, interrupts: Interrupts, until: float) -> Ending | None:
        belief.lose_by_clock()
        ended_elsewhere = belief.cause is not None and belief.cause.reason in ENDED_ELSEWHERE
        if self._process.poll() is not None:
            return Ending.LOST if belief.is_lost else Ending.EXITED
        if belief.is_lost and not ended_elsewhere:
            self._end(self._grace_after_loss(belief))
            return Ending.LOST
        if time.monotonic() >= until:
            self._end(self._grace_s)
            return Ending.TIMEOUT
        if interrupts.seen:
            sys.stderr.write(f"relet: the program has {self._grace_s:g} s to end; once more to kill it\n")
            self._end(self._grace_s, interrupts)
            return Ending.EXITED if self._process.returncode == 0 else Ending.INTERRUPTED
        return None

    def _grace_after_loss(self, belief: Belief) -> float:
        """What is left of the lease, a second at most; after a cancel all of it, since nobody takes over then."""
        if belief.cause is not None and belief.cause.reason is LostReason.CANCELLED:
            return self._grace_s
        left_s = (belief.trust.until_ms - belief.clock.fast_ms()) / 1_000
        return max(0.0, min(LOST_GRACE_S, self._grace_s, left_s))

    def _end(self, grace_s: float, interrupts: Interrupts | None = None) -> None:
        """TERM to the whole group, KILL to what is left of it after the grace, or at once on a second signal."""
        self._signal(signal.SIGTERM)
        until = time.monotonic() + grace_s
        while time.monotonic() < until and self._group_lives():
            if interrupts is not None and interrupts.seen > 1:
                break
            time.sleep(LOOK_EVERY_S)
        self._kill_group()

    def _kill_group(self) -> None:
        self._signal(signal.SIGKILL)
        self._warden.release(self._process.pid)
        self._process.wait()

    def _group_lives(self) -> bool:
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _await_exit(self, wake: queue.SimpleQueue[None]) -> None:
        self._process.wait()
        wake.put(None)

    @staticmethod
    def _wake_on(belief: Belief, wake: queue.SimpleQueue[None]) -> Any:
        def tell(_lost: LeaseLost) -> None:
            wake.put(None)

        belief.on_lost.append(tell)
        return tell
