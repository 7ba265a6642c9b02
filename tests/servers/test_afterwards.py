"""What becomes of the servers of tests that did not end in order."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.afterwards import ROOT
from tests.servers.at_work import at_work_in
from tests.waiting import eventually

PROGRAM = """
from tests.postgres import PostgresServer
with PostgresServer() as server:
    {first}
    print(server.folder, flush=True)
    input()
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["pass", "server.freeze()"])
def test_servers_of_a_killed_process_are_ended_and_their_folders_removed(first):
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(first=first)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with started:
        folder = Path(started.stdout.readline().strip())
        assert len(at_work_in(folder)) > 3
        started.send_signal(signal.SIGKILL)
    eventually(lambda: not folder.exists())
    assert at_work_in(folder) == []
