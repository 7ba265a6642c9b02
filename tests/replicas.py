"""A primary and a standby that streams from it, on two ports, as they are run where a server may be lost.

with Replicas(synchronous=True) as pair: relet.connect(pair.url()); pair.kill_primary(); pair.promote()
"""

import contextlib

from tests.postgres import PostgresServer
from tests.waiting import eventually

STANDBY = "standby"


class Standby(PostgresServer):
    """A copy of a running server, which follows it."""

    NAME = "pg-standby"

    def __init__(self, primary, version=None, **options):
        super().__init__(version, tcp=True, **options)
        self._primary = primary

    def _fill(self):
        source = f"{self._primary.url()}&application_name={STANDBY}"
        self._run(self._bin / "pg_basebackup", "-D", "data", "-d", source, "-R", "-c", "fast", "--no-sync")


class Replicas:
    """`primary` and `standby` are servers as any other; `synchronous`: a commit is answered when both have it."""

    def __init__(self, version=None, *, synchronous=True, steered=False, **settings):
        self._awaited = "sync" if synchronous else "async"
        # Whoever is promoted has no standby of its own, and waits for none.
        names = {"synchronous_standby_names": STANDBY} if synchronous else {}
        self.primary = PostgresServer(version, tcp=True, steered=steered, **names, **settings)
        self.standby = Standby(self.primary, version, steered=steered, **settings)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.primary)
            stack.enter_context(self.standby)
            eventually(self._follows)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def url(self, database="postgres"):
        """Of whichever of the two takes writes."""
        ports = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{ports}/{database}?target_session_attrs=read-write&connect_timeout=2"

    def catch_up(self):
        """Wait until the standby shows all that the primary has written."""
        written = self.primary.value("SELECT pg_current_wal_lsn()")
        eventually(lambda: self.standby.value("SELECT pg_last_wal_replay_lsn() >= %s", written))

    def part(self):
        """The standby receives no more: what an asynchronous primary acknowledges from here on, it does not have."""
        self.standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.standby.execute("SELECT pg_reload_conf()")
        eventually(lambda: self.primary.value("SELECT count(*) FROM pg_stat_replication") == 0)

    def kill_primary(self):
        """SIGKILL to all its processes."""
        self.primary.kill()

    def promote(self):
        """The standby becomes a primary, on a timeline of its own; answers when it takes writes."""
        assert self.standby.value("SELECT pg_promote(true, 30)"), f"it was not promoted: {self.standby.log}"
        assert not self.standby.value("SELECT pg_is_in_recovery()")

    def _follows(self):
        streaming = self.primary.value("SELECT state = 'streaming' AND sync_state = %s FROM pg_stat_replication",
                                       self._awaited)  # fmt: skip
        return streaming and self.standby.value("SELECT pg_is_in_recovery()")
