"""Stores for tests: real ones in a temporary folder, with a clock that the test steers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from relet.artifacts.opening import folder_beside, open_artifacts
from relet.client.blocking import Client
from relet.connect import collect_artifacts
from relet.core.backend import Backend
from relet.store.sqlite.backend import SqliteBackend
from relet.testing.clock import Clock


class SteeredClient(Client):
    """A client whose store and holders obey `.clock`."""

    clock: Clock


def open_store(
    folder: str | Path, clock: Clock, *, tenant: str = "default", holder: str | None = None,
    wrap: Callable[[Backend], Backend] | None = None, url: str | None = None, schema: str | None = None,
) -> SteeredClient:  # fmt: skip
    """The store in a folder, opened (made, if need be) on a steered clock; a second call opens it once more.

    `wrap` puts something between the client and its store. With a `url` of a PostgreSQL database the store is there,
    in `schema`, and only its artifacts are in the folder.
    """
    folder = Path(folder)
    backend: Backend
    if url is None:
        backend = SqliteBackend(f"sqlite:///{folder / 'relet.db'}", tenant, clock=clock, state=folder / "state")
    else:
        from relet.store.postgres.backend import PostgresBackend

        backend = PostgresBackend(url, tenant, schema, clock=clock)
    place = folder_beside(folder / "relet.db")
    client = SteeredClient(
        wrap(backend) if wrap else backend, holder=holder, clock=clock, collecting=collect_artifacts,
        files=lambda: open_artifacts(place, now=lambda: clock.wall_ms() / 1_000),
    )  # fmt: skip
    clock.on_move(client.keeper.poke)
    return client


@contextmanager
def store(clock: Clock | None = None, holder: str | None = None) -> Iterator[SteeredClient]:
    """A fresh store in a temporary folder; its clock (`.clock`) stands still until it is advanced."""
    with (
        tempfile.TemporaryDirectory(prefix="relet-") as folder,
        open_store(folder, clock or Clock(), holder=holder) as client,
    ):
        yield client
