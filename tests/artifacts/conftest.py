"""Fixtures of the tests of artifacts."""

import pytest

from relet.artifacts import objects
from tests.artifacts.places import WallClock, opened, s3
from tests.processes.fixtures import start

__all__ = ["address", "bucket", "bucket_time", "clock", "local", "memory", "place", "start"]


@pytest.fixture
def clock():
    return WallClock()


@pytest.fixture(scope="session")
def address():
    with s3() as address:
        yield address


@pytest.fixture
def local(tmp_path, clock):
    """An empty folder of this machine."""
    return opened("folder", tmp_path / "artifacts", clock, None)


@pytest.fixture
def bucket_time(monkeypatch, clock):
    """Buckets write down the time of the test's clock, too; by path, which no two objects share."""
    written, real = {}, objects._copy
    monkeypatch.setattr(
        objects, "_copy", lambda meta: real(meta)._replace(written_s=written.setdefault(meta["path"], clock()))
    )
    return written


@pytest.fixture
def memory(clock, bucket_time):
    return opened("memory", None, clock, None)


BUCKETS = ["memory", "folder by obstore", "s3"]


@pytest.fixture(params=["folder", *BUCKETS])
def place(request, tmp_path, clock, bucket_time):
    """Each kind of place in turn."""
    return made(request, tmp_path, clock)


@pytest.fixture(params=BUCKETS)
def bucket(request, tmp_path, clock, bucket_time):
    """Each kind of bucket in turn."""
    return made(request, tmp_path, clock)


def made(request, tmp_path, clock):
    address = request.getfixturevalue("address") if request.param == "s3" else None
    return opened(request.param, tmp_path / "artifacts", clock, address)
