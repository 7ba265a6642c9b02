"""The service within this process, and somebody who asks it."""

from contextlib import asynccontextmanager

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from relet.core.access import SCOPES_OF, Access, Role, Scope
from relet.core.errors import Forbidden, Unavailable
from relet.core.problem import NO_CREDENTIAL
from relet.server.app import application
from relet.server.service import Service


class Ring:
    """Keys that are their tenant's name; `bound-…` is bound to a queue, and `blind` may not look."""

    async def who(self, key):
        if key is None or key == "bad":
            raise Forbidden("no good key", code=NO_CREDENTIAL)
        return Access(
            key_id=key, name=key, tenant=key.removeprefix("bound-") if key != "blind" else "default",
            role=Role.ADMIN, scopes=frozenset([Scope.WORK]) if key == "blind" else SCOPES_OF[Role.ADMIN],
            queues=["q"] if key.startswith("bound-") else None,
        )  # fmt: skip


class Site:
    """The service in this process, and somebody who asks it."""

    def __init__(self, db, http):
        self.db, self.http = db, http

    async def get(self, path, key="default"):
        return await self.http.get(path, headers=headers(key))

    async def ask(self, operation, key="default", **request):
        answer = await self.http.post(f"/v1/{operation}", json=request, headers=headers(key))
        return answer.status_code, answer.json()

    async def figures(self, key="default"):
        """Samples by name and labels."""
        answer = await self.get("/metrics", key)
        assert (answer.status_code, answer.headers["content-type"]) == (
            200,
            "text/plain; version=0.0.4; charset=utf-8",
        )
        samples = [
            ((sample.name, *sample.labels.values()), sample.value)
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        ]
        assert len(dict(samples)) == len(samples), "no series stands there twice"
        return dict(samples)


def headers(key):
    return {} if key is None else {"Authorization": f"Bearer {key}"}


@asynccontextmanager
async def site(db):
    service = Service(db.backend, lambda: None)
    app = application(service, Ring(), hosts=["testserver"], version="0")
    transport = httpx2.ASGITransport(app=app)
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as http:
            yield Site(db, http)
    finally:
        service.close()


def taken_away(monkeypatch, here, kind):
    """The store does not answer requests of this kind any more."""
    called = type(here.db.backend).call

    def call(backend, ask, **options):
        if isinstance(ask, kind):
            raise Unavailable("the disk is gone")
        return called(backend, ask, **options)

    monkeypatch.setattr(type(here.db.backend), "call", call)
