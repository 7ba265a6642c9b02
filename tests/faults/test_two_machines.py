"""Two machines, each a network namespace, and a cable between them that is pulled: who is cut off stops first."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

import relet
from tests.processes.fixtures import start
from tests.processes.program import ROOT
from tests.server.keys import made_key
from tests.waiting import eventually

pytestmark = pytest.mark.faults
__all__ = ["start"]
CUT_OFF = ROOT / "tests" / "processes" / "programs" / "cut_off.py"
HERE, THERE, PORT = "10.213.77.1", "10.213.77.2", 8787


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Cable:
    """Between a machine that serves and one that works."""

    def __init__(self, after):
        if shutil.which("ip") is None or os.geteuid():
            pytest.fail("network namespaces need root, and ip: sudo apt-get install -y iproute2")
        self.server, self.worker = (f"relet-{end}-{os.getpid()}" for end in "ab")
        for name in (self.server, self.worker):
            ip("netns", "add", name)
            after.callback(ip, "netns", "del", name)
        ip(
            "link",
            "add",
            "relet-cable",
            "netns",
            self.server,
            "type",
            "veth",
            "peer",
            "relet-cable",
            "netns",
            self.worker,
        )
        for name, address in ((self.server, HERE), (self.worker, THERE)):
            ip("-n", name, "address", "add", f"{address}/30", "dev", "relet-cable")
            ip("-n", name, "link", "set", "relet-cable", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def pull(self):
        """Nothing arrives any more, and nobody is told."""
        ip("-n", self.server, "link", "set", "relet-cable", "down")

    def plug_in(self):
        """As before."""
        ip("-n", self.server, "link", "set", "relet-cable", "up")


@pytest.fixture
def cable():
    with ExitStack() as after:
        yield Cable(after)


def on(name):
    return ("ip", "netns", "exec", name)


@pytest.mark.parametrize("ttl_s", [1, 3])
def test_who_is_cut_off_stops_before_another_begins_and_its_late_writes_are_refused(cable, start, tmp_path, ttl_s):
    store = f"sqlite:///{tmp_path / 'work.db'}"
    with relet.connect(store, holder="next") as home, ExitStack() as after:
        serve = [
            *on(cable.server),
            sys.executable,
            "-m",
            "relet",
            "serve",
            "--url",
            store,
            "--listen",
            f"{HERE}:{PORT}",
        ]
        # Before it is served: beyond loopback nobody is without one.
        key = {"RELET_API_KEY": made_key(home.backend)}
        served = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        after.callback(served.stderr.close)
        after.callback(served.wait)
        after.callback(served.terminate)
        assert "serving" in served.stderr.readline()
        task = home.submit("q", ttl=ttl_s)
        worker = start(CUT_OFF, f"http://{HERE}:{PORT}", environment=key, before=on(cable.worker))
        token = int(worker.line())
        renewed = home.task(task.id).expires_at
        eventually(lambda: home.task(task.id).expires_at > renewed)
        cable.pull()
        lease = eventually(lambda: home.claim("q"))
        begun = time.monotonic()
        reason, at_work, stopped = worker.line().split()
        assert reason == "expired"
        assert float(at_work) < float(stopped) < begun
        assert lease.token > token
        cable.plug_in()
        worker.tell("go")
        assert [worker.line(), worker.line()] == [f"refused {lease.token}"] * 2
        lease.complete("in time")
        assert (home.result(task.id), home.task(task.id).losses) == ("in time", 1)
