"""Starts of processes and forks take turns, so that no fork holds the pipe whose end a start waits for."""

import os
import subprocess
import sys
import threading

import pytest

from relet.client.beside import spawning

LONG_S, SHORT_S = 15, 0.2
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def fork():
    if (pid := os.fork()) == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def test_a_fork_waits_until_a_start_is_over(monkeypatch):
    forking, ended = threading.Event(), []

    def begin(_command, **_options):
        thread = threading.Thread(target=lambda: (forking.set(), ended.append(fork())))
        thread.start()
        assert forking.wait(LONG_S)
        thread.join(SHORT_S)
        assert ended == [], "its copy of the pipe would hold up this very start"
        return thread

    monkeypatch.setattr(subprocess, "Popen", begin)
    spawning.start(["anything"]).join(LONG_S)
    assert ended == [0]


def test_a_process_is_started_in_a_fork_as_well():
    if (pid := os.fork()) == 0:
        process = spawning.start([sys.executable, "-S", "-c", "raise SystemExit(7)"])
        os._exit(process.wait())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
