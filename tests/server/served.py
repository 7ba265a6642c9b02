"""A service over a store of its own, asked in process: each request as a server hands it to the application."""

import asyncio
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec

from relet.core.access import SCOPES_OF, Role
from relet.core.operation import operation_of
from relet.core.rules.keys import RevokeKey
from relet.core.wire import encode
from relet.server.app import application
from relet.server.gate import Gate
from relet.server.keys import StoreKeys
from relet.server.rates import FAILURES, Buckets
from relet.server.service import Service
from relet.testing import Clock
from relet.testing.stores import open_store
from tests.server.keys import made_key
from tests.store.inside import contents

HOST = "relet.test:8787"
HERE = ("127.0.0.1", 50_000)
REFUSALS = (400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 421, 422, 429, 503)


@dataclass
class Reply:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return msgspec.json.decode(self.body)

    @property
    def code(self):
        return self.json["code"]

    @property
    def is_problem(self):
        return self.headers.get("content-type") == "application/problem+json" and self.json["status"] == self.status


class Served:
    """The store of tenant `a`, and an application before it; keys are made as `relet token` makes them."""

    def __init__(self, folder, *, ring=None, hosts=(HOST,), **options):
        self.folder, self.clock = folder, Clock()
        self.db = open_store(folder, self.clock, tenant="a")
        self.backend = self.db.backend
        self.service = Service(self.backend, lambda: self.db.files.place)
        self.app = application(self.service, ring or StoreKeys(self.service), hosts=hosts, version="0", **options)
        self.loop = asyncio.new_event_loop()

    def of(self, tenant):
        return self.service.of(tenant)

    def key(self, role=Role.ADMIN, tenant="a", name=None, **more):
        """The text of a new key."""
        return made_key(self.backend, role, tenant, name, **more)

    def revoke(self, key):
        self.backend.operate(RevokeKey(which=key.split("_")[1]))

    def app_forgets_failures(self):
        """No address has shown a wrong key: what a test is about is not how often it asks."""
        self.gate._failed = Buckets(FAILURES)

    @property
    def gate(self):
        layer = self.app
        while not isinstance(layer, Gate):
            layer = layer._app
        return layer

    @property
    def audit(self):
        return self.gate._refused.__self__

    async def written(self):
        """All that is to be in the audit log is."""
        await self.audit.write()

    def keys(self):
        """One of each role, by its name."""
        return {str(role): self.key(role) for role in SCOPES_OF}

    def ask(self, method, target, **options):
        return self.loop.run_until_complete(ask(self.app, method, target, **options))

    def call(self, request, key, **options):
        """One operation, as our own client would ask it."""
        return self.ask(
            "POST", f"/v1/{operation_of(type(request)).name}", key=key, body=encode(request), **options
        )  # fmt: skip

    def rows(self):
        return contents(self.folder)

    def close(self):
        self.loop.run_until_complete(settled())
        self.loop.close()
        self.service.close()
        self.db.close()


async def settled():
    """What requests have left under way is ended."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def scope_of(method, target, *, key=None, headers=(), host=HOST, client=HERE):
    """A request as a server hands it on."""
    path, _, query = target.partition("?")
    given = [(b"host", host.encode()), *((name.lower().encode(), value.encode()) for name, value in headers)]
    if method == "POST" and b"content-type" not in dict(given):
        given.append((b"content-type", b"application/json"))
    if key is not None:
        given.append((b"authorization", f"Bearer {key}".encode()))
    return {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(),
        "root_path": "", "headers": given, "client": client, "server": ("127.0.0.1", 8787), "state": {},
    }  # fmt: skip


async def ask(app, method, target, *, body=b"", pieces=None, leaves=None, said=None, **options):
    """The answer to a request. Of a stream that does not end it is what comes first; then whoever asked goes away.

    With an event `leaves` they stay until it is set. In place of a body that is whole there may be `pieces`, the last
    of which is None where no more of them will come; `said` is a list for what is answered.
    """
    coming = list([body] if pieces is None else pieces)
    stays, gone, said = leaves is not None, leaves or asyncio.Event(), [] if said is None else said

    async def receive():
        if coming and (piece := coming.pop(0)) is not None:
            return {"type": "http.request", "body": piece, "more_body": bool(coming)}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        said.append(message)
        if message["type"] == "http.response.body" and message.get("body") and not stays:
            gone.set()

    await app(scope_of(method, target, **options), receive, send)
    start, *rest = said
    return Reply(
        start["status"], {name.decode().lower(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in rest),
    )  # fmt: skip


async def shake_hands(app, path, *, key=None, host=HOST):
    """What a service says to who would speak WebSocket with it."""
    given = [(b"host", host.encode()), (b"upgrade", b"websocket"), (b"connection", b"upgrade")]
    if key is not None:
        given.append((b"authorization", f"Bearer {key}".encode()))
    scope = {
        "type": "websocket", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
        "scheme": "ws", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": given, "client": HERE, "server": ("127.0.0.1", 8787), "subprotocols": [], "state": {},
    }  # fmt: skip
    said = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        said.append(message["type"])

    await app(scope, receive, send)
    return said
