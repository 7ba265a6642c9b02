"""`relet serve` in a process of its own, over one store; a test kills it, ends it, and begins it again."""

import http.client
import re
import signal

import relet.__main__
from tests.processes.program import PATIENCE_S
from tests.server.keys import made_key
from tests.waiting import eventually

LISTENS = re.compile(r" at http://127\.0\.0\.1:(\d+)")
ENTRY = relet.__main__.__file__
ENDED = 0


class ServiceProcess:
    """One service after the other. Where the last one listens is its `port`, as a `Proxy` wants to know."""

    def __init__(self, start, home, **options):
        """`start` is that of `Programs`; `home` a client at the store itself. The options are of the first one."""
        self._start, self._home = start, home
        self.begin(**options)

    def begin(self, before=(), environment=None):
        """`before` are words of a program that runs the service, such as one that kills it at a commit."""
        words = [*before, ENTRY, "serve", "--url", self._home.backend.url, "--listen", "127.0.0.1:0"]
        self.program = self._start(*words, environment={"NO_COLOR": "1", **(environment or {})})
        found = eventually(lambda: LISTENS.search(self.program.errors) or self.program.process.poll(), PATIENCE_S)
        assert isinstance(found, re.Match), self.program.errors
        self.port = int(found[1])

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def key(self, role, **more):
        """A new key."""
        return made_key(self._home.backend, role, **more)

    def is_ready(self):
        """What `/readyz` says to a balancer."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            line.request("GET", "/readyz")
            return line.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            line.close()

    def kill(self):
        """As the kernel does; what was under way is gone."""
        self.program.close()

    def end(self):
        """As a deployment does. Its exit code."""
        self.program.send(signal.SIGTERM)
        return self.program.wait()
