"""Handlers that run apart from a worker within the test's own process; gates and words of theirs are files."""

import multiprocessing
import os
import signal
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


def _sleep_elsewhere(seconds):
    os.setsid()
    time.sleep(seconds)
