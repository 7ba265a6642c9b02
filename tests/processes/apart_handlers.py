"""Handlers that run apart from a worker within the test's own process; gates and words of theirs are files."""

import functools
import multiprocessing
import os
import signal
import socket
import time
from pathlib import Path

import relet
from tests.waiting import eventually

app = relet.App()


@app.task("gated", queue="work", ttl="60s", isolation="process")
def gated(run, gate: str):
    Path(f"{gate}.begun").write_text(str(os.getpid()))
    eventually(Path(gate).exists, within=60)
    return os.getpid()


@app.task("quiet", queue="work", isolation="process", max_silence="300s")
def quiet(run, gate: str):
    eventually(Path(gate).exists, within=60)


@app.task("dies", queue="work", ttl="60s", isolation="process", retry=relet.RetryPolicy(max_attempts=1))
def dies(run, said: str):
    """Its own process dies, and a fork of it, which shares all its files, goes on in its group, another out of it."""
    fork = multiprocessing.get_context("fork")
    within, without = (fork.Process(target=target, args=(300,)) for target in (time.sleep, _sleep_elsewhere))
    within.start()
    without.start()
    eventually(lambda: os.getpgid(without.pid) != os.getpgid(0))
    Path(said).write_text(f"{within.pid} {without.pid}")
    os.kill(os.getpid(), signal.SIGKILL)


@app.task("forks", queue="work", ttl="60s", isolation="process")
def forks(run, gate: str, raises: bool):
    """A fork of its process comes out of the handler too, once the process is at its next task."""
    pid = os.fork()
    if pid:
        return [pid, os.getpid()]
    eventually(Path(gate).exists, within=60)
    if raises:
        os.execvp("no-such-program", ["no-such-program"])
    return "of the fork"


@app.task("joins", queue="work", ttl="60s", isolation="process")
def joins(run, said: str, pid: int):
    """Ends once a fork of its process has, whose words are with the worker by then."""
    Path(f"{said}.begun").touch()
    _, status = os.waitpid(pid, 0)
    return [os.getpid(), os.waitstatus_to_exitcode(status)]


@app.task("closes", queue="work", ttl="60s", isolation="process", retry=relet.RetryPolicy(max_attempts=1))
def closes(run, taken: bool):
    """Closes all descriptors but the usual three, and may take their numbers for sockets of its own."""
    os.closerange(3, 300)
    if taken:
        for end in (end for _ in range(20) for end in socket.socketpair()):
            end.detach()
    return "not heard"


def _add(run, n: int, more: int):
    return [n + more, os.getpid()]


adds = app.task("adds", queue="work", isolation="process")(functools.partial(_add, more=2))


@app.task("misnamed", queue="work", isolation="process", retry=relet.RetryPolicy(max_attempts=3))
def misnamed(run):
    raise relet.Permanent("cannot read " + os.fsdecode(b"caf\xe9.txt"), code="BAD-FILE")


def _sleep_elsewhere(seconds):
    os.setsid()
    time.sleep(seconds)
