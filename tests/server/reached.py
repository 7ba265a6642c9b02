"""A service behind a proxy that does what networks do, and clients on the real clock."""

import contextlib

import relet
from relet.client.blocking import Client
from relet.client.http.backend import HttpBackend
from relet.connect import collect_artifacts, place_of
from relet.server.app import application
from relet.server.keys import StoreKeys
from relet.server.service import Service
from tests.cut_connection import Proxy
from tests.server.keys import made_key
from tests.server.wire import Wire


class Reached:
    """One store; `home` is at it, `db` asks the service through the proxy."""

    def __init__(self, url, after):
        self.home = after.enter_context(relet.connect(url))
        self.wire = Wire()
        after.callback(self.wire.close)
        self.service = Service(self.home.backend, lambda: self.home.files.place)
        after.callback(self.service.close)
        self.proxy = after.enter_context(Proxy(self.wire))
        self.url = f"http://127.0.0.1:{self.proxy.port}"
        hosts = ["127.0.0.1"]
        self.wire.app = application(self.service, StoreKeys(self.service), hosts=hosts, version="0")
        self.wire.in_loop(self.service.news.begin)
        after.callback(self.wire.in_loop, self.service.news.stop)
        self._after = after

    def client(self, key=None, holder=None):
        backend = HttpBackend(self.url, key=key or made_key(self.home.backend))
        return self._after.enter_context(
            Client(backend, holder=holder, files=lambda: place_of(backend), collecting=collect_artifacts)
        )


@contextlib.contextmanager
def reached(url):
    with contextlib.ExitStack() as after:
        yield Reached(url, after)
