"""Every kind of place, empty, with a clock that can be moved on; and ways to look behind their back."""

import hashlib
import os
import time
from contextlib import contextmanager
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer
from obstore.store import LocalStore

from relet.artifacts.objects import ObjectArtifacts
from relet.artifacts.opening import open_artifacts

BIG = bytes(range(256)) * ((9 << 20) // 256)
"""More than is held in memory, and more than one part of an upload."""


class WallClock:
    """The machine's clock, moved on by what a test says."""

    def __init__(self):
        self.ahead_s = 0.0

    def __call__(self):
        return time.time() + self.ahead_s

    def advance(self, seconds):
        self.ahead_s += seconds


@contextmanager
def s3():
    """A service that speaks S3 on this machine; answers its address."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def s3_settings(address):
    return {
        "aws_endpoint": address, "aws_region": "us-east-1",
        "aws_access_key_id": "any", "aws_secret_access_key": "any",
        "client_options": {"allow_http": True}, "retry_config": {"max_retries": 0},
    }  # fmt: skip


def make_bucket(address, name):
    with urlopen(Request(f"{address}/{name}", method="PUT")) as answer:
        assert answer.status == 200


def opened(kind, folder, clock, address):
    """An empty place of a kind."""
    if kind == "s3":
        bucket = os.urandom(8).hex()
        make_bucket(address, bucket)
        return open_artifacts(f"s3://{bucket}/some/prefix", config=s3_settings(address), now=clock)
    if kind == "memory":
        return open_artifacts("memory://", now=clock)
    if kind == "folder by obstore":
        folder.mkdir()
        return ObjectArtifacts(LocalStore(folder), str(folder), now=clock)
    return open_artifacts(folder, now=clock)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def uri(data):
    return f"artifact:{sha256(data)}"


def path_of(store, data):
    """Where a local place keeps these bytes."""
    digest = sha256(data)
    return os.path.join(store.folder, "sha256", digest[:2], digest[2:])


def drafts(store):
    folder = os.path.join(store.folder, "drafts")
    return os.listdir(folder) if os.path.isdir(folder) else []
