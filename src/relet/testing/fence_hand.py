"""One holder in a process of its own, for the proof of a fence: does what it is told, and can stop itself midway."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from relet.core.errors import StaleToken, Unavailable

PATIENCE_S: Final = 120.0
STOPPING: Final = "stopping"
READY: Final = "ready"


@dataclass(frozen=True)
class Subject:
    """A fence and its target, as one process has them open. Values are short texts."""

    fence: Any
    """Has `raise_to(resource, token)` and `write(resource, token)`."""
    put: Callable[[Any, str, str], None]
    """`put(target, resource, text)` writes within a block."""
    read: Callable[[str], str | None]
    """`read(resource)` answers what stands there now; None before anything was written."""
    put_bare: Callable[[str, str], None]
    """`put_bare(resource, text)` writes without the fence, as a program does that looked at its lease before."""


class Planned(Exception):
    """Raised on purpose in the middle of a block."""


class Hand:
    """The near end of such a process."""

    def __init__(self, open_subject: Callable[[], AbstractContextManager[Subject]]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, open_subject), daemon=True)
        self._process.start()
        far.close()
        self._expect(READY)

    def tell(self, verb: str, *arguments: Any, stop: str = "") -> None:
        """Begin; with `stop` it stands still there, as under SIGSTOP: "before" the block, or "inside" of it."""
        self._pipe.send((verb, arguments, stop))
        if stop:
            self._expect(STOPPING)
            self._until(self._stands_still, f"a process told to stop {stop} its block goes on")

    def answer(self) -> Any:
        """What the verb answered; the error that it raised is an answer."""
        if not self._pipe.poll(PATIENCE_S):
            raise AssertionError(f"a holder did not answer within {PATIENCE_S:g} s")
        try:
            return self._pipe.recv()
        except EOFError:
            raise AssertionError("a holder ended without an answer; its own words are on stderr") from None

    def __call__(self, verb: str, *arguments: Any) -> Any:
        """Both."""
        self.tell(verb, *arguments)
        return self.answer()

    def go_on(self) -> Any:
        """Wake it where it stood still, and take its answer."""
        self._signal(signal.SIGCONT)
        return self.answer()

    def kill(self) -> None:
        """As the machine would; awaited."""
        self._signal(signal.SIGKILL)
        self._process.join()

    def is_alive(self) -> bool:
        """Has nobody killed it."""
        return self._process.is_alive()

    def close(self) -> None:
        """End it, wherever it stands."""
        if self._process.is_alive():
            self.kill()
        self._process.close()
        self._pipe.close()

    def _expect(self, word: str) -> None:
        if (told := self.answer()) != word:
            raise told if isinstance(told, Exception) else AssertionError(f"a holder said {told!r}, not {word!r}")

    def _signal(self, number: signal.Signals) -> None:
        if self._process.pid is not None:
            os.kill(self._process.pid, number)

    def _stands_still(self) -> bool:
        command = ["ps", "-o", "stat=", "-p", str(self._process.pid)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip().startswith("T")  # noqa: S603

    def _until(self, condition: Callable[[], bool], problem: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > until:
                raise AssertionError(problem)
            time.sleep(0.005)


def _serve(pipe: Connection, open_subject: Callable[[], AbstractContextManager[Subject]]) -> None:
    try:
        with open_subject() as subject:
            pipe.send(READY)
            while True:
                try:
                    verb, arguments, stop = pipe.recv()
                except EOFError:
                    return
                pipe.send(_done(subject, verb, arguments, _Stop(pipe, stop)))
    except Exception as wrong:  # noqa: BLE001 - the test that waits at the other end is told
        with contextlib.suppress(OSError):
            pipe.send(_portable(wrong))


class _Stop:
    """Stands still at the named place."""

    def __init__(self, pipe: Connection, place: str) -> None:
        self._pipe, self._place = pipe, place

    def at(self, place: str) -> None:
        if place == self._place:
            self._pipe.send(STOPPING)
            os.kill(os.getpid(), signal.SIGSTOP)


def _done(subject: Subject, verb: str, arguments: tuple[Any, ...], stop: _Stop) -> Any:
    try:
        return getattr(_Verbs(subject, stop), verb)(*arguments)
    except Exception as wrong:  # noqa: BLE001 - what a fence raises is what is judged
        return _portable(wrong)


class _Verbs:
    """What a hand can be told."""

    def __init__(self, subject: Subject, stop: _Stop) -> None:
        self._subject, self._stop = subject, stop

    def raise_to(self, resource: Any, token: Any) -> None:
        self._subject.fence.raise_to(resource, token)

    def write(self, resource: Any, token: Any, text: str) -> None:
        self._stop.at("before")
        with self._subject.fence.write(resource, token) as target:
            self._stop.at("inside")
            self._subject.put(target, resource, text)

    def write_and_fail(self, resource: str, token: int, text: str) -> None:
        with self._subject.fence.write(resource, token) as target:
            self._subject.put(target, resource, text)
            raise Planned(text)

    def write_bare(self, resource: str, text: str) -> None:
        self._stop.at("before")
        self._subject.put_bare(resource, text)

    def write_many(self, resource: str, token: int, times: int) -> int:
        """How many of some writes were accepted, until the first that was not."""
        done, until = 0, time.monotonic() + PATIENCE_S
        while done < times and time.monotonic() < until:
            try:
                self.write(resource, token, f"{token}")
            except StaleToken:
                break
            except Unavailable:
                continue  # the others were in the way for too long
            done += 1
        return done

    def read(self, resource: str) -> str | None:
        return self._subject.read(resource)


def _portable(wrong: Exception) -> Exception:
    """An error as it can cross a pipe: foreign ones by their text."""
    try:
        pickle.loads(pickle.dumps(wrong))  # noqa: S301 - of this very process
    except Exception:  # noqa: BLE001 - whatever a foreign error does when it is packed
        return RuntimeError(f"{type(wrong).__name__}: {wrong}")
    return wrong


@contextlib.contextmanager
def hands(open_subject: Callable[[], AbstractContextManager[Subject]]) -> Iterator[Callable[[], Hand]]:
    """Starts holders; what is left of them ends with the block."""
    started: list[Hand] = []

    def start() -> Hand:
        started.append(Hand(open_subject))
        return started[-1]

    try:
        yield start
    finally:
        for hand in started:
            hand.close()
