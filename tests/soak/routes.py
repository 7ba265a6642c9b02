"""How the programs of a soak reach the store: at its file, or by way of a service that has troubles of its own."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from relet.client.blocking import Client
from relet.client.http.backend import HttpBackend
from relet.core.access import Role
from tests.processes.looking import ask
from tests.processes.program import Programs
from tests.processes.service import ENDED, ServiceProcess
from tests.soak.network import Network
from tests.waiting import eventually

READY_WITHIN_S = 20.0
LIVES_FROM, LIVES_TO = 0.3, 0.9
"""Of a run: meanwhile one service lives, so that it can be seen whether it grows."""
LOOK_EVERY_S = 1.0
AT_ONCE = 2
"""Troubles of the network."""
HOLDING = "SELECT count(*) FROM leases WHERE ended IS NULL"


@dataclass(frozen=True)
class Scene:
    """How much there is to do, and how many do it."""

    ttl_s: float
    slots: int
    """Of each worker."""
    stopped_ttls: tuple[float, float]
    """For how long a worker is stopped, the least and the most."""
    kinds: dict[str, int]
    """How many of a hundred tasks are of each kind."""
    open_max: int | None = None
    """No more tasks than that wait for a worker: so many are there from the start."""
    at_once: int = 1
    """So many are submitted by one request."""
    held_least: int = 0
    """So many leases are held at any time, the median of all looks."""


class AtFile:
    """Everybody is at the file itself."""

    scene = Scene(2.0, 4, (0.2, 3), {"steps": 58, "effect": 28, "asks": 6, "sleeps": 5, "long": 3})
    heads: tuple[str, ...] = ()

    def __init__(self, programs: Programs, home: Client, workers: int, seconds: float) -> None:
        self.submitter = self.person = home
        self.troubles = ()
        self.watched: Watched | None = None

    def worker(self, n: int) -> tuple[str, dict[str, str]]:
        """Its URL and its environment."""
        return self.person.backend.url, {}

    def figures(self) -> tuple[object, ...]:
        return ()

    def close(self) -> list[str]:
        """What was wrong with it."""
        return []


class Sample(NamedTuple):
    """A service at one moment of its life."""

    at_s: float
    memory_mb: float
    descriptors: int
    threads: int


NOTHING = Sample(0, 0, 0, 0)


@dataclass
class Watched:
    """What was seen of a service, and of the leases that are held through it."""

    grown: list[Sample] = field(default_factory=list)
    """Of the long life, from its beginning."""
    most: Sample = NOTHING
    """Of all lives, each figure for itself."""
    held: list[int] = field(default_factory=list)
    restarts: int = 0

    def saw(self, sample: Sample, is_long: bool) -> None:
        """Is it before the end of the long life; what lived before that began is forgotten with `begins_again`."""
        self.most = Sample(*map(max, self.most, sample))
        if is_long:
            self.grown.append(sample)

    def begins_again(self, is_long: bool) -> None:
        """Another service lives from now on, and is the one that lives for long where nobody ends it before that."""
        self.restarts += 1
        if is_long:
            self.grown.clear()


class ByService:
    """Each program has a key of its kind and a line of its own; lines are cut, and the service is killed."""

    scene = Scene(
        4.0, 50, (0.1, 2), {"holds": 55, "steps": 14, "effect": 12, "asks": 6, "sleeps": 6, "long": 7},
        open_max=400, at_once=5, held_least=150,
    )  # fmt: skip
    heads = ("held", "restarts", "cuts", "lost", "twice", "service MB", "files", "threads")

    def __init__(self, programs: Programs, home: Client, workers: int, seconds: float) -> None:
        self.faults: list[str] = []
        self.watched = Watched()
        self._home, self._begun, self._seconds = home, time.monotonic(), seconds
        self._every_s = min(15.0, seconds / 15)
        self._service = ServiceProcess(programs.start, home)
        self._network = Network(self._service, workers + 1, self.scene.ttl_s)
        self._keys = {role: self._service.key(role) for role in (Role.WORKER, Role.SUBMITTER, Role.APPROVER)}
        self.submitter, self.person = (self._client(role, workers) for role in (Role.SUBMITTER, Role.APPROVER))
        self.troubles = (*[self._trouble_network] * AT_ONCE, self._trouble_service, self._watch)

    def worker(self, n: int) -> tuple[str, dict[str, str]]:
        return self._url(n), {"RELET_API_KEY": self._keys[Role.WORKER]}

    def figures(self) -> tuple[object, ...]:
        counts, now, held = self._network.counts, self._sample(), self.watched.held
        return (
            held[-1] if held else 0, self.watched.restarts, counts["cut"] + counts["silent"] + counts["refused"],
            counts["cut_reply"] + counts["cut_before"], counts["say_twice"],
            *((f"{now.memory_mb:.1f}", now.descriptors, now.threads) if now else ("-", "-", "-")),
        )  # fmt: skip

    def close(self) -> list[str]:
        for client in (self.submitter, self.person):
            client.close()
        self._look_whether_it_lives()
        self._end()
        self._network.close()
        return self.faults

    def _url(self, n: int) -> str:
        return f"http://127.0.0.1:{self._network.port(n)}"

    def _client(self, role: Role, n: int) -> Client:
        return Client(HttpBackend(self._url(n), key=self._keys[role]), holder=str(role))

    def _trouble_network(self, chance: random.Random, ended: threading.Event) -> None:
        while not ended.wait(chance.uniform(0.05, 1)):
            self._network.trouble(chance, ended)

    def _trouble_service(self, chance: random.Random, ended: threading.Event) -> None:
        """Stopped at any time; killed or ended, and begun again later, while nobody looks whether it grows."""
        while not ended.wait(chance.uniform(0.5, 1.5) * self._every_s):
            lives = LIVES_FROM < self._passed() < LIVES_TO
            self._look_whether_it_lives()
            (how,) = chance.choices((self._kill, self._end, self._stop), (0, 0, 1) if lives else (5, 2, 2))
            how()
            ended.wait(chance.uniform(0, 1.25) * self.scene.ttl_s)
            if how == self._stop:
                self._service.program.send(signal.SIGCONT)
            else:
                self._begin()

    def _look_whether_it_lives(self) -> None:
        if (code := self._service.program.process.poll()) is not None:
            self.faults.append(f"the service ended by itself, with {code}: {self._service.program.errors[-500:]}")

    def _kill(self) -> None:
        self._service.kill()
        self._read_log()

    def _end(self) -> None:
        if (code := self._service.end()) != ENDED:
            self.faults.append(f"the service ended with {code}: {self._service.program.errors[-500:]}")
        self._read_log()

    def _stop(self) -> None:
        self._service.program.send(signal.SIGSTOP)

    def _begin(self) -> None:
        self.watched.begins_again(self._passed() < LIVES_TO)
        began = time.monotonic()
        self._service.begin()
        eventually(self._service.is_ready, READY_WITHIN_S - (time.monotonic() - began))

    def _read_log(self) -> None:
        """A fault of the service's own, which it tells nobody who asks."""
        if "Traceback" in (said := self._service.program.errors):
            self.faults.append(f"the service had a fault: {said[-1_000:]}")

    def _passed(self) -> float:
        return (time.monotonic() - self._begun) / self._seconds

    def _watch(self, chance: random.Random, ended: threading.Event) -> None:
        watched = self.watched
        while not ended.wait(LOOK_EVERY_S):
            watched.held += [n for (n,) in ask(self._home, HOLDING)]
            if (sample := self._sample()) is None:
                continue
            watched.saw(sample, self._passed() < LIVES_TO)

    def _sample(self) -> Sample | None:
        """None while it is not there."""
        here = Path(f"/proc/{self._service.program.pid}")
        with contextlib.suppress(OSError, IndexError):
            pages = int((here / "statm").read_text(encoding="ascii").split()[1])
            if not pages:
                return None  # it has ended, and nobody has asked for its exit code yet
            return Sample(
                time.monotonic() - self._begun, pages / 256, len(list((here / "fd").iterdir())),
                len(list((here / "task").iterdir())),
            )  # fmt: skip
        return None


ROUTES = {"file": AtFile, "http": ByService}
