"""Servers of the targets, each started once by whoever needs it first, and the subjects on top of them."""

import urllib.request
from functools import partial
from pathlib import Path

import pytest

from relet.testing.fence_kit import proof
from tests.fences import subjects
from tests.fences.repository import make_remote
from tests.postgres import PostgresServer
from tests.processes.program import Programs
from tests.valkey import ValkeyServer

APP = Path(__file__).parent / "programs" / "fenced_app.py"


@pytest.fixture(scope="session")
def postgres():
    with PostgresServer() as server:
        yield server


@pytest.fixture
def database(postgres):
    """The URL of a database of its own."""
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="session")
def valkey():
    with ValkeyServer() as server:
        yield server


@pytest.fixture(scope="session")
def s3():
    """The address of an S3 with the bucket `guarded`."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        made = urllib.request.Request(f"http://{host}:{port}/guarded", method="PUT")
        urllib.request.urlopen(made, timeout=30).close()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture(scope="session")
def fenced_app(tmp_path_factory):
    """The address of a web service behind the middleware."""
    folder = tmp_path_factory.mktemp("fenced-app")
    with Programs(folder) as programs:
        yield programs.start(APP, folder / "tokens.db").line()


HOLDING = {"stdlib", "apsw", "postgres"}
TARGETS = ["stdlib", "apsw", "postgres", "files", "objects", "redis", "git", "http"]


@pytest.fixture(scope="module", params=TARGETS)
def proved(request, tmp_path_factory):
    """A proof on each target, with processes that its checks share."""
    target, folder = request.param, tmp_path_factory.mktemp(request.param)
    opened = opener(target, folder, request.getfixturevalue)
    with proof(opened, holds=target in HOLDING, at_once=target == "http") as made:
        yield made


def opener(target, folder, fixture):
    match target:
        case "stdlib" | "apsw":
            subjects.make_table(folder / "target.db")
            return partial(getattr(subjects, f"on_{target}"), folder / "target.db")
        case "postgres":
            fixture("postgres").execute(subjects.TABLE)
            return partial(subjects.on_postgres, fixture("postgres").url())
        case "files":
            return partial(subjects.on_files, folder)
        case "objects":
            return partial(subjects.on_objects, fixture("s3"))
        case "redis":
            return partial(subjects.on_redis, fixture("valkey").socket)
        case "git":
            return partial(subjects.on_git, make_remote(folder / "remote"))
        case _:
            return partial(subjects.on_http, fixture("fenced_app"))
