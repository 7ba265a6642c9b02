"""From a URL to a client; the one place that knows every engine, and loads none before it is asked for."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from relet.artifacts.place import ArtifactStore
    from relet.client.awaiting import AsyncClient
    from relet.client.blocking import Client
    from relet.client.clock import HolderClock
    from relet.client.files import Referenced
    from relet.core.backend import Backend, Operated
    from relet.core.doctor.facts import Facts
    from relet.core.doctor.report import Report
    from relet.core.rules.tenants import Tenant
    from relet.core.upkeep import Migrated, Restored, Verified

DEFAULT_URL = "sqlite:///relet.db"
IN_MEMORY = "sqlite://"
DEFAULT_SCHEMA = "relet"
POSTGRES = ("postgresql", "postgres")
HTTP = ("http", "https")
DEFAULT_TENANT = "default"
"""Where a service is asked, it means the tenant of the credential, whichever that is."""
NOT_FOR_OTHERS = "does this for nobody who asks it"


def backend_of(url: str | None, tenant: str, schema: str | None) -> Backend:
    """The engine that a URL means, bound to a tenant."""
    from relet.core import border
    from relet.core.errors import Invalid
    from relet.core.masking import masked
    from relet.core.redaction import SECRETS

    SECRETS.watch(os.environ)
    url = url or os.environ.get("RELET_URL") or DEFAULT_URL
    if not isinstance(url, str):
        raise Invalid(f"url: {border.shown(url)} is not text", field="url")
    border.name("tenant", tenant)
    scheme = url.partition(":")[0]
    if scheme in POSTGRES:
        return _postgres(url, tenant, schema)
    if schema not in (None, DEFAULT_SCHEMA):
        raise Invalid(
            f"schema: {border.shown(schema)} means nothing to a SQLite file; leave it out, or name another file",
            field="schema",
        )
    if scheme == "sqlite":
        from relet.store.sqlite.backend import SqliteBackend

        return SqliteBackend(url, tenant)
    if is_service(url):
        with extra("http", "http://"):
            from relet.client.http.backend import HttpBackend
        return HttpBackend(url, None if tenant == DEFAULT_TENANT else tenant)
    raise Invalid(
        f"url: {border.shown(masked(url))} has no known scheme; write sqlite:///work.db for a file in this folder, "
        "sqlite:// for a private store in memory, postgresql://host/database for a server's, or http://host:8787 for "
        "a service",
        field="url",
    )


def _postgres(url: str, tenant: str, schema: str | None) -> Backend:
    with driver():
        from relet.store.postgres.backend import PostgresBackend
    return PostgresBackend(url, tenant, schema)


def driver() -> AbstractContextManager[None]:
    """For the imports of the engine: its driver is an extra."""
    return extra("postgres", "postgresql://")


@contextmanager
def extra(name: str, scheme: str) -> Iterator[None]:
    """For imports that an extra of the package brings. Raises `Invalid` with its name where it is not installed."""
    from relet.core.errors import Invalid

    try:
        yield
    except ModuleNotFoundError as missing:
        raise Invalid(
            f"url: {missing.name} is not installed, and {scheme} needs it → pip install 'relet[{name}]'",
            field="url", missing=missing.name,
        ) from missing  # fmt: skip


def is_postgres(url: str) -> bool:
    """Does a URL mean a database of a server."""
    return url.partition(":")[0] in POSTGRES


def is_service(url: str) -> bool:
    """Does a URL mean a service, which is asked for a store."""
    return url.partition(":")[0] in HTTP


def is_there(url: str) -> bool:
    """Has somebody made the store of a server's database already."""
    with driver():
        from relet.store.postgres import upkeep
    return upkeep.is_there(url, None)


def place_of(backend: Backend) -> ArtifactStore:
    """Where a store's artifacts are: with its service, else in `$RELET_ARTIFACTS`, else in a folder beside the file.

    A private store in memory has a folder of its own, which is removed when the process ends. That of a store in a
    database is under this user's folder for state.
    """
    from relet.artifacts.opening import folder_beside, open_artifacts

    if is_service(backend.url):
        from relet.artifacts.service import ServiceArtifacts

        service: Any = backend
        return ServiceArtifacts(service.line)
    if given := os.environ.get("RELET_ARTIFACTS"):
        return open_artifacts(given)
    if backend.url == IN_MEMORY:
        import tempfile

        folder = tempfile.TemporaryDirectory(prefix="relet-artifacts-")
        _FOLDERS.append(folder)
        return open_artifacts(folder.name)
    if is_postgres(backend.url):
        server: Any = backend
        return open_artifacts(folder_of_server(server.store.store_id))
    return open_artifacts(folder_beside(backend.place))


def folder_of_server(store_id: str) -> Path:
    """A database has nothing beside it. Programs on other machines need a place that all of them reach."""
    from contextlib import suppress

    from relet.disk.state import state_folder

    folder = state_folder() / "artifacts" / store_id
    with suppress(OSError):  # whoever stores something is told what is wrong with it
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def collect_artifacts(
    place: ArtifactStore, referenced: Referenced, older_s: float, *, dry_run: bool = False
) -> tuple[int, int]:
    """Remove what nobody names from a place of artifacts; loaded when it is asked for."""
    from relet.artifacts.collect import collect

    return collect(place, referenced, older_s, dry_run=dry_run)


def diagnose(url: str | None, tenant: str, *, alone: bool = False) -> Report:
    """What is amiss with a store, also where it cannot be opened; one that does not exist is not made.

    All tenants are looked at; with `alone` the given one. Commands that are advised name every other than it.
    """
    from msgspec.structs import replace

    from relet.core.doctor.examine import examine
    from relet.core.doctor.facts import Facts
    from relet.core.errors import Error
    from relet.store.sqlite.examine import look_at

    url = url or os.environ.get("RELET_URL") or DEFAULT_URL
    _refuse_service(url)
    if is_postgres(url):
        with driver():
            from relet.store.postgres import upkeep
        return upkeep.diagnose(url, tenant, None, alone=alone, artifacts=os.environ.get("RELET_ARTIFACTS"))
    place = look_at(url)
    if place.file is not None and not place.file.exists:
        return examine(place.file.path, Facts(place=place))
    facts = Facts(place=place, tenant=tenant, alone=alone)
    try:
        # What is left of work in a place that its store has left is nobody's any more.
        facts = facts if facts.moved else _with_work(url, facts)
    except Error as refused:
        facts = replace(facts, refused=str(refused))
    return examine(IN_MEMORY if place.file is None else place.file.path, facts)


def _with_work(url: str, facts: Facts) -> Facts:
    from relet.core import border
    from relet.store.conditions import with_work
    from relet.store.sqlite.backend import SqliteBackend

    border.name("tenant", facts.tenant)
    with closing(SqliteBackend(url, facts.tenant)) as backend:
        return with_work(backend, facts)


def tenants_at(url: str | None, after: str, limit: int) -> list[Tenant]:
    """A page of the tenants of a store that is there already."""
    from relet.core import border, limits
    from relet.store.sqlite.backend import SqliteBackend

    border.whole("limit", limit, least=1, most=limits.PAGE_ITEMS_MAX)
    url = url or os.environ.get("RELET_URL") or DEFAULT_URL
    if is_postgres(url):
        with driver():
            from relet.store.postgres import upkeep
        with upkeep.existing(url, "default", None) as server:
            return server.tenants(after, limit)
    file_at(url)
    with closing(SqliteBackend(url, "default")) as backend:
        return backend.tenants(after, limit)


@contextmanager
def operated_at(url: str | None, *, service: str = NOT_FOR_OTHERS, anew: bool = False) -> Iterator[Operated]:
    """A store itself, for what belongs to none of its tenants; with `anew` one is made where there is none.

    Raises `Invalid` for the address of a service, with what `service` says of why it is not asked.
    """
    from relet.core.border import invalid

    url = url or os.environ.get("RELET_URL") or DEFAULT_URL
    _refuse_service(url, service)
    if url == IN_MEMORY:
        raise invalid("url", "is a store in memory, which ends with this command → --url sqlite:///work.db")
    if not anew and is_postgres(url):
        with driver():
            from relet.store.postgres import upkeep
        with upkeep.existing(url, DEFAULT_TENANT, None) as server:
            yield server
        return
    if not anew:
        file_at(url)
    with closing(backend_of(url, DEFAULT_TENANT, None)) as backend:
        store: Any = backend
        yield store


def _refuse_service(url: str, why: str = NOT_FOR_OTHERS) -> None:
    from relet.core.border import invalid

    if is_service(url):
        raise invalid(
            "url",
            f"is a service, which {why}. Name the store that it serves, where that can be reached → "
            "--url sqlite:///work.db or --url postgresql://host/database",
        )


def file_at(url: str | None) -> Path:
    """The file of a store that is there already. Raises `NotFound`, or `Invalid` for what is no SQLite store."""
    from relet.core.border import invalid
    from relet.store.sqlite.alone import file_of

    url = url or os.environ.get("RELET_URL") or DEFAULT_URL
    _refuse_service(url)
    if not url.startswith("sqlite:"):
        raise invalid("url", "is not a SQLite file; only those are looked after by this command")
    return file_of(url)


def verify_at(url: str | None, *, bytes_too: bool = True, artifacts: str | None = None) -> Verified:
    """Does all hold that must hold of a store or of a backup, which nobody need be able to open. Nothing is written.

    Stored bytes are looked for in `artifacts`, without it where a store in this place has them. Raises `NotFound`
    where there is none, `Invalid` for what is none.
    """
    from msgspec.structs import replace

    from relet.client.files import place_name
    from relet.store.sqlite.verify import verify_file

    if is_postgres(url or os.environ.get("RELET_URL") or ""):
        return _verify_server(url or os.environ["RELET_URL"], artifacts, bytes_too=bytes_too)
    path = file_at(url)
    if not bytes_too:
        return verify_file(path, None)
    place = _artifacts_beside(path, artifacts)
    return replace(verify_file(path, place.exists), artifacts_at=place_name(place))


def _verify_server(url: str, artifacts: str | None, *, bytes_too: bool) -> Verified:
    from msgspec.structs import replace

    from relet.artifacts.opening import open_artifacts
    from relet.client.files import place_name

    with driver():
        from relet.store.postgres import upkeep
    with upkeep.existing(url, "default", None) as backend:
        if not bytes_too:
            return backend.verify()
        place = open_artifacts(artifacts) if artifacts else place_of(backend)
        return replace(backend.verify(place.exists), artifacts_at=place_name(place))


def restore_at(url: str, backup: str, above: int | None, *, bytes_too: bool = True) -> Restored:
    """Put a backup in the place of a store, and look which of the bytes that it names are there."""
    from msgspec.structs import replace

    from relet.client.files import place_name
    from relet.core.border import invalid
    from relet.store.sqlite.place import path_of
    from relet.store.sqlite.restore import restore

    if not url.startswith("sqlite:"):
        raise invalid("url", "is not a SQLite file; only files can be restored")
    path = path_of(url)
    if not bytes_too or path is None:
        return restore(url, backup, above=above)
    place = _artifacts_beside(path, None)
    return replace(restore(url, backup, above=above, exists=place.exists), artifacts_at=place_name(place))


def migrate_at(url: str, *, dry_run: bool = False, post: bool = False) -> Migrated:
    """Bring a store up to the schema of this relet; with `post` take away what only older clients needed."""
    from relet.core.border import invalid

    if is_postgres(url):
        with driver():
            from relet.store.postgres import upgrade as on_server
        return on_server.migrate(url, None, dry_run=dry_run, post=post)
    if post:
        raise invalid("post", "is for PostgreSQL; a file is brought up to date in one go: leave it out")
    if not url.startswith("sqlite:"):
        raise invalid("url", "is neither a SQLite file nor a PostgreSQL database")
    from relet.store.sqlite.upgrade import migrate

    return migrate(url, dry_run=dry_run)


def _artifacts_beside(path: Path, artifacts: str | None) -> ArtifactStore:
    from relet.artifacts.opening import folder_beside, open_artifacts

    return open_artifacts(artifacts or os.environ.get("RELET_ARTIFACTS") or folder_beside(path))


_FOLDERS: list[TemporaryDirectory[str]] = []
"""Of stores in memory: kept until the process ends."""


def connect(
    url: str | None = None, tenant: str = "default", holder: str | None = None, schema: str | None = None, *,
    clock: HolderClock | None = None,
) -> Client:  # fmt: skip
    """Open a store: the URL, else `$RELET_URL`, else `sqlite:///relet.db` in this folder.

    In a PostgreSQL database the store is in `schema`, else in the one after the # of the URL, else in `relet`. One
    client serves all threads, opens anew after a fork, and works inside a running event loop. Raises
    `Invalid` or `Unavailable`, with the way out.
    """
    return _client(backend_of(url, tenant, schema), holder, clock)


def _client(backend: Backend, holder: str | None, clock: HolderClock | None) -> Client:
    from relet.client.blocking import Client

    return Client(backend, holder=holder, clock=clock, files=lambda: place_of(backend), collecting=collect_artifacts)


class Connecting:
    """An awaiting client to be: `await` it, or use it as `async with`."""

    def __init__(
        self, url: str | None, tenant: str, holder: str | None, schema: str | None, clock: HolderClock | None
    ) -> None:
        self._arguments = (url, tenant, schema)
        self._holder, self._clock = holder, clock
        self._client: AsyncClient | None = None

    def __await__(self) -> Generator[Any, None, AsyncClient]:
        return self._open().__await__()

    async def _open(self) -> AsyncClient:
        import asyncio

        from relet.client.awaiting import AsyncClient

        backend = await asyncio.to_thread(backend_of, *self._arguments)
        return AsyncClient(_client(backend, self._holder, self._clock))

    async def __aenter__(self) -> AsyncClient:
        self._client = await self._open()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()


def connect_async(
    url: str | None = None, tenant: str = "default", holder: str | None = None, schema: str | None = None, *,
    clock: HolderClock | None = None,
) -> Connecting:  # fmt: skip
    """As `connect`, for `await` and `async with`."""
    return Connecting(url, tenant, holder, schema, clock)
