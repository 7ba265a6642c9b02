"""Three PostgreSQL servers, of which Patroni keeps one the leader, on one machine: what a failover really is like.

    with PatroniCluster() as cluster:
        relet.connect(cluster.url())
        killed = cluster.kill_leader()
        cluster.wait_for_new_leader(killed)

Wants Debian's packages patroni, etcd-server, python3-etcd, python3-psycopg2 and postgresql-15.
"""

import contextlib
import json
import socket

import psycopg

from tests.cut_connection import Proxy
from tests.postgres import SETTINGS, programs, reachable
from tests.servers.at_work import stands_still
from tests.servers.etcd import Etcd
from tests.servers.server import Server
from tests.servers.unprivileged import free_port, installed
from tests.waiting import eventually

PACKAGES = "patroni etcd-server python3-etcd python3-psycopg2 postgresql-15"
SCOPE = "relet"
# Patroni asks for loop_wait + 2 * retry_timeout <= ttl. Releases after Debian's raise a ttl below 20 to that.
TTL_S, LOOP_S, RETRY_S = 8, 1, 3
PATIENCE_S = 90
# Without whole pages in the log a server that has been the leader cannot be rewound to follow the new one.
PARAMETERS = SETTINGS | {"full_page_writes": "on"}
LOCAL = "127.0.0.1/32"


class Node(Server):
    """A Patroni and its PostgreSQL. It speaks to etcd by way of a proxy of its own, so that it can be cut off."""

    ENDS_BY = None

    def __init__(self, name, etcd, version, dynamic):
        self.NAME = self.name = name
        self.port, self._rest_port = free_port(), free_port()
        self.etcd = Proxy(etcd)
        self._version, self._dynamic = version, dynamic

    def value(self, query, *values):
        """The first column of the first row; None if there is none."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            row = connection.execute(query, values).fetchone()
        return row and row[0]

    def url(self, database="postgres"):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}?connect_timeout=2"

    def takes_writes(self):
        with contextlib.suppress(psycopg.OperationalError):
            return not self.value("SELECT pg_is_in_recovery()")
        return False

    def _prepare(self):
        self._program = installed("patroni", PACKAGES)
        self._bin = reachable(programs(self._version))
        # JSON is YAML.
        (self.folder / "patroni.yml").write_text(json.dumps(self._settings()), encoding="utf-8")
        (self.folder / "patroni.yml").chmod(0o644)

    def _settings(self):
        rest = f"127.0.0.1:{self._rest_port}"
        return {
            "scope": SCOPE, "name": self.name,
            "restapi": {"listen": rest, "connect_address": rest},
            # "Proxies" are not asked for etcd's own address, by which the node would go past ours.
            "etcd3": {"host": f"127.0.0.1:{self.etcd.port}", "use_proxies": True},
            "bootstrap": {
                "dcs": self._dynamic,
                "initdb": [{"encoding": "UTF8"}, "no-locale", "no-sync", "data-checksums"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}", "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": str(self.folder / "data"), "bin_dir": str(self._bin),
                "pgpass": str(self.folder / "pgpass"),
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}},
                "pg_hba": ["local all all trust", f"host all,replication all {LOCAL} trust"],
                "parameters": {"unix_socket_directories": str(self.folder)},
                "basebackup": ["no-sync", {"checkpoint": "fast"}],
            },
            "watchdog": {"mode": "off"},
        }  # fmt: skip

    def _command(self):
        return [self._program, "patroni.yml"]

    def _answers(self):
        """Its Patroni does; when there is a PostgreSQL is for the cluster to say."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._rest_port), 1):
            return True
        return False

    def stop(self, how=None):
        """Not in order: Patroni would take its time for that."""
        self.kill()


class PatroniCluster:
    """`synchronous`: only who has every acknowledged commit may become leader (Patroni's `synchronous_mode`)."""

    def __init__(self, version="15", *, synchronous=True, nodes=3, ttl_s=TTL_S, **settings):
        self.synchronous = synchronous
        dynamic = {
            "ttl": ttl_s, "loop_wait": LOOP_S, "retry_timeout": RETRY_S, "synchronous_mode": synchronous,
            "postgresql": {"use_pg_rewind": True, "parameters": PARAMETERS | settings},
        }  # fmt: skip
        self.etcd = Etcd()
        self.nodes = [Node(f"node-{number}", self.etcd, version, dynamic) for number in range(1, nodes + 1)]

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.etcd)
            for node in self.nodes:
                stack.enter_context(node.etcd)
                stack.enter_context(node)
            self.wait_until_whole()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def url(self, database="postgres"):
        """Of whichever node takes writes."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write&connect_timeout=2"

    def leader(self):
        """The node that etcd names; None between two."""
        named = self.etcd.value(f"/service/{SCOPE}/leader")
        return next((node for node in self.nodes if node.name == named), None)

    def kill_leader(self):
        """SIGKILL to its Patroni and its PostgreSQL; answers which it was."""
        return self._strike(Node.kill)

    def freeze_leader(self):
        """SIGSTOP to both, as when its machine is suspended: its connections stay open. Answers which it was.

        `thaw()` of the node wakes it as leader. Without the watchdog that Patroni wants for that case it may even
        take the lead back from the node that has it by then, and what that node has written is gone.
        """
        return self._strike(Node.freeze)

    def cut_off_leader(self):
        """Its Patroni no longer reaches etcd; its clients reach it until it gives up by itself. Answers which."""
        return self._strike(lambda node: node.etcd.black_hole())

    def heal(self, node):
        """Undo what was done to a node, so that it joins again, as a replica; a frozen one is started anew."""
        node.etcd.cut()  # what was asked meanwhile must not arrive now
        node.etcd.pass_on()
        if node.is_running and stands_still(node.process.pid):
            node.kill()
        if not node.is_running:
            node.start()

    def wait_for_new_leader(self, than, within=PATIENCE_S):
        """The node that leads instead of that one, once it takes writes."""

        def other():
            node = self.leader()
            return node if node and node is not than and node.takes_writes() else None

        return eventually(other, within)

    def wait_until_whole(self, within=PATIENCE_S):
        """One node leads, all others stream from it; if synchronous, one of those is known to have every commit."""
        eventually(self._is_whole, within)

    def _is_whole(self):
        for node in self.nodes:
            assert node.is_running, f"{node.name} ended: {node.log}"
        leader = self.leader()
        if not leader or not leader.takes_writes():
            return False
        with contextlib.suppress(psycopg.OperationalError):
            kinds = leader.value("SELECT array_agg(sync_state) FROM pg_stat_replication WHERE state = 'streaming'")
            whole = len(kinds or []) == len(self.nodes) - 1
            return whole and (not self.synchronous or ("sync" in kinds and self._knows_its_standby()))
        return False

    def _knows_its_standby(self):
        """In synchronous mode nobody else may take over."""
        told = json.loads(self.etcd.value(f"/service/{SCOPE}/sync") or "{}")
        return bool(told.get("sync_standby"))

    def _strike(self, blow):
        node = eventually(self.leader)
        blow(node)
        return node
