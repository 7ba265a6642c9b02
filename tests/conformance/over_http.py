"""Routes through a service: the clients of a SQLite store, or of one in a PostgreSQL database, ask it over HTTP."""

from contextlib import contextmanager
from functools import cached_property

from relet.artifacts.service import ServiceArtifacts
from relet.client.awaiting import AsyncClient
from relet.client.http.backend import HttpBackend
from relet.client.http.line import Line
from relet.connect import collect_artifacts
from relet.core.access import Role
from relet.core.rules.decide import Decide
from relet.server.app import application
from relet.server.keys import StoreKeys
from relet.server.service import Service
from relet.testing.stores import SteeredClient
from tests.conformance.awaiting import Awaited
from tests.server.keys import made_key


class TwoKeys(HttpBackend):
    """Asked with one key, and as the people who decide with another: nobody answers the own question."""

    def __init__(self, url, key, persons):
        super().__init__(url, key=key)
        self._person = Line(url, persons)

    def _line_for(self, ask):
        return self._person if isinstance(ask, Decide) else super()._line_for(ask)

    def close(self):
        self._person.close()
        super().close()


class HttpRoute:
    """A route of an engine, whose clients are beside a service."""

    objects_per_upload = 2

    def __init__(self, wire, engine):
        self._wire, self._engine = wire, engine
        self._opened = []
        self._backend = engine.db.backend
        self.service = Service(self._backend, lambda: engine.db.files.place)
        ring = StoreKeys(self.service)
        wire.app = application(self.service, ring, hosts=[wire.host], version="0")
        self.db = self._open("default")

    def __getattr__(self, name):
        return getattr(self._engine, name)

    @cached_property
    def other(self):
        return self._open("default")

    @cached_property
    def stranger(self):
        return self._open("elsewhere")

    def _open(self, tenant):
        backend = TwoKeys(
            self._wire.url, *(made_key(self._backend, role, tenant) for role in (Role.ADMIN, Role.APPROVER))
        )
        place = ServiceArtifacts(backend.line)
        client = SteeredClient(backend, clock=self.clock, files=lambda: place, collecting=self._collect)
        self.clock.on_move(client.keeper.poke)
        self._opened.append(client)
        return client

    def _collect(self, _place, referenced, older_s, *, dry_run):
        """By whoever looks after the service: bytes are removed where it runs."""
        return collect_artifacts(self._engine.db.files.place, referenced, older_s, dry_run=dry_run)

    def call(self, ask):
        return self.db.backend.call(ask)

    @contextmanager
    def locked(self):
        with self._engine.locked() as waiting:
            yield waiting

    def close(self):
        for client in self._opened:
            client.close()
        self.service.close()
        self._engine.close()


class AwaitingHttpRoute(HttpRoute):
    """The awaiting client, driven from one event loop."""

    def __init__(self, wire, engine, loop):
        self._loop = loop
        super().__init__(wire, engine)

    def _open(self, tenant):
        return Awaited(self._loop, AsyncClient(super()._open(tenant)))

    def call(self, ask):
        return self._loop.run(self.db.inner.hop(self.db.inner.blocking.backend.call, ask))
