"""Services over the steered stores of folders, all at one address: the first part of a path names the folder."""

from pathlib import Path

from relet.server.app import application
from relet.server.keys import NoKeys
from relet.server.service import Service
from relet.testing.clock import Clock
from relet.testing.stores import open_store
from tests.server.wire import Wire

CLOCK = "clock"


class Services:
    """One for each folder below a root that somebody asks for; nobody is asked for a key."""

    def __init__(self, root):
        self._root = Path(root)
        self._open = {}
        self.asked = set()
        """The paths that somebody has asked for."""
        self._wire = Wire()
        self._wire.app = self._answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._wire.in_loop(lambda: self._let_go(self._open))
        self._wire.close()

    @property
    def url(self):
        """Below it are the services, by the names of their folders."""
        return self._wire.url

    async def _answer(self, scope, receive, send):
        _, name, path = scope["path"].split("/", 2)
        self.asked.add(path)
        if name not in self._open:
            self._let_go([one for one in self._open if not (self._root / one).exists()])
            self._open[name] = One(self._root / name, self._wire.host)
        await self._open[name].app({**scope, "path": f"/{path}", "raw_path": f"/{path}".encode()}, receive, send)

    def _let_go(self, names):
        for name in list(names):
            self._open.pop(name).close()


class One:
    """The service of one folder."""

    def __init__(self, folder, host):
        self._db = open_store(folder, Clock(folder / CLOCK))
        self._service = Service(self._db.backend, lambda: self._db.files.place)
        self.app = application(self._service, NoKeys("default"), hosts=[host], version="0")
        self._service.news.begin()

    def close(self):
        self._service.news.stop()
        self._service.close()
        self._db.close()
