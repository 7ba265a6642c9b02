"""Each fence with its target, as one process has them open: what the kit's processes are started with.

There are a hundred of these processes: each loads the driver of its own target alone.
"""

import contextlib
import sqlite3
import tempfile
from pathlib import Path
from urllib.parse import quote

import apsw

from relet import fences
from relet.fences.admission import spelled
from relet.testing.fence_kit import Subject
from tests.fences.repository import Clone

PATIENCE = "1s"
TABLE = "CREATE TABLE IF NOT EXISTS kept (resource TEXT PRIMARY KEY, text TEXT NOT NULL)"
PUT = "INSERT INTO kept VALUES ({0}, {0}) ON CONFLICT (resource) DO UPDATE SET text = excluded.text"
READ = "SELECT text FROM kept WHERE resource = {0}"


def rows(connection, fence, mark):
    """A subject whose values are rows of one table."""

    def put(target, resource, text):
        target.execute(PUT.format(mark), (resource, text))

    def read(resource):
        found = connection.execute(READ.format(mark), (resource,)).fetchone()
        return found[0] if found else None

    return Subject(fence, put, read, lambda resource, text: put(connection, resource, text))


@contextlib.contextmanager
def on_stdlib(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        yield rows(connection, fences.SqliteFence(connection, patience=PATIENCE), "?")


@contextlib.contextmanager
def on_apsw(path):
    connection = apsw.Connection(str(path))
    try:
        yield rows(connection, fences.SqliteFence(connection, patience=PATIENCE), "?")
    finally:
        connection.close()


def make_table(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute(TABLE)


@contextlib.contextmanager
def on_postgres(url):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        yield rows(connection, fences.PostgresFence(connection, patience=PATIENCE), "%s")


@contextlib.contextmanager
def on_files(folder):
    folder = Path(folder)

    def read(resource):
        return (folder / resource).read_text() if (folder / resource).exists() else None

    yield Subject(
        fences.FileFence(folder, patience=PATIENCE),
        put=lambda target, _, text: target.write(text.encode()),
        read=read,
        put_bare=lambda resource, text: (folder / resource).write_text(text),
    )


def bucket(endpoint):
    from obstore.store import S3Store

    return S3Store(
        "guarded", endpoint=endpoint, access_key_id="none", secret_access_key="none", region="us-east-1",
        virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip


@contextlib.contextmanager
def on_objects(endpoint):
    store = bucket(endpoint)
    fence = fences.ObjectFence(store, prefix="work")

    def read(resource):
        found = fence.read(resource)
        return found.get("value").decode() if found else None

    def put_bare(resource, text):
        key = f"work/bare/{spelled(text)}"
        store.put(key, text.encode())
        pointer = f'{{"token": 1, "published_by": 1, "objects": {{"value": "{key}"}}}}'
        store.put(f"work/{spelled(resource)}/pointer.json", pointer.encode())

    yield Subject(fence, lambda target, _, text: target.put("value", text.encode()), read, put_bare)


@contextlib.contextmanager
def on_redis(socket):
    import redis

    with redis.Redis(unix_socket_path=str(socket), decode_responses=True) as client:
        yield Subject(
            fences.RedisFence(client),
            put=lambda target, resource, text: target.set(f"value:{resource}", text),
            read=lambda resource: client.get(f"value:{resource}"),
            put_bare=lambda resource, text: client.set(f"value:{resource}", text),
        )


@contextlib.contextmanager
def on_git(remote):
    with tempfile.TemporaryDirectory(prefix="relet-clone-") as folder:
        clone = Clone(remote, Path(folder) / "clone")

        def put(target, resource, text):
            branch = f"work/{spelled(resource)}"
            target.push(branch, clone.commit(branch, text))

        yield Subject(
            fences.GitFence(clone.folder),
            put,
            read=lambda resource: clone.text(f"work/{spelled(resource)}"),
            put_bare=lambda resource, text: put(clone, resource, text),
        )


@contextlib.contextmanager
def on_http(url):
    import httpx2

    with httpx2.Client(base_url=url, timeout=30) as client:

        def read(resource):
            answer = client.get(f"/values/{quote(resource, safe='')}")
            return answer.text if answer.status_code == 200 else None

        def send(sender, place, resource, text):
            answer = sender.request("PUT", f"/{place}/{quote(resource, safe='')}", content=text)
            assert answer.status_code == 204, answer.text

        yield Subject(
            fences.HttpFence(client),
            put=lambda target, resource, text: send(target, "values", resource, text),
            read=read,
            put_bare=lambda resource, text: send(client, "bare", resource, text),
        )
