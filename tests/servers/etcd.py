"""One etcd, in which Patroni's nodes agree on who leads; what it holds can be read."""

import base64
import contextlib
import http.client
import json

from tests.servers.server import Server
from tests.servers.unprivileged import environment, free_port, installed


class Etcd(Server):
    NAME = "etcd"

    def __init__(self):
        self.port = free_port()
        self._peers_port = free_port()

    def value(self, key):
        """None if there is none: it was not written, or its time has passed."""
        ask = {"key": base64.b64encode(key.encode()).decode()}
        found = json.loads(self._fetch("POST", "/v3/kv/range", json.dumps(ask))).get("kvs")
        return base64.b64decode(found[0]["value"]).decode() if found else None

    def _prepare(self):
        self._program = installed("etcd", "etcd-server")

    def _command(self):
        clients, peers = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self._peers_port}"
        return [
            self._program, "--name", "only", "--data-dir", "data", "--log-level", "warn",
            "--listen-client-urls", clients, "--advertise-client-urls", clients,
            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"only={peers}",
        ]  # fmt: skip

    def _environment(self):
        # Debian builds it for machines that upstream does not test, and it then asks to be told.
        return environment(self.folder) | {"ETCD_UNSUPPORTED_ARCH": "arm64"}

    def _answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return json.loads(self._fetch("GET", "/health")).get("health") == "true"
        return False

    def _fetch(self, method, path, body=None):
        # Not urllib, which would go by way of a proxy of the machine.
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            return connection.getresponse().read()
