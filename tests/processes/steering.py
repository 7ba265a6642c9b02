"""A store on the clock of a test's folder, as programs open it: in that folder, in a database, or by a service."""

import os
from pathlib import Path

from relet.connect import collect_artifacts
from relet.testing.clock import Clock
from relet.testing.stores import SteeredClient, open_store

SERVICE = "SERVICE"
DATABASE = "DATABASE"


def opened(folder, holder):
    """The store is by the service that is named in the environment, else in the database, else in the folder."""
    clock = Clock(Path(folder) / "clock")
    if (url := os.environ.get(SERVICE)) is None:
        return open_store(folder, clock, holder=holder, url=os.environ.get(DATABASE))
    return at_service(url, clock, holder)


def at_service(url, clock, holder=None):
    """A client of a service whose store is on a steered clock, as the client is."""
    from relet.artifacts.service import ServiceArtifacts
    from relet.client.http.backend import HttpBackend

    backend = HttpBackend(url)
    place = ServiceArtifacts(backend.line)
    client = SteeredClient(
        backend, holder=holder, clock=clock, files=lambda: place, collecting=collect_artifacts
    )  # fmt: skip
    clock.on_move(client.keeper.poke)
    return client
