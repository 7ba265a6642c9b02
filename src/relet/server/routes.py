"""The operations of the catalog, each under its name; and who asks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from relet.core import limits
from relet.core.access import Access
from relet.core.border import duration_ms
from relet.core.errors import Error
from relet.core.operation import Operation
from relet.core.received import received
from relet.core.rules.claim import CLAIM, Claim
from relet.core.rules.glance import Glance, Glanced
from relet.core.rules.outlook import Foreseen, Outlook
from relet.core.whoami import API, PATIENCE, Whoami
from relet.server.answers import answer
from relet.server.audit import Audit
from relet.server.bodies import Bodies
from relet.server.claimants import Claimants
from relet.server.counted import Counted
from relet.server.doubled import Doubled
from relet.server.numbers import whole
from relet.server.reach import check_reach, with_key
from relet.server.service import Service
from relet.server.still import Still
from relet.server.uploads import Uploads

WAIT_S_MAX: Final = 60
"""Of a claim that waits: longer, and something on the way ends it."""
READ_BYTES_MAX: Final = 64 << 10
WAITS_MAX: Final = 2_000
WAITS_PER_KEY_MAX: Final = 1_000


class Operations:
    """Answers one operation for one credential."""

    def __init__(self, service: Service, version: str, audit: Audit, still: Still, uploads: Uploads) -> None:
        self._service, self._version = service, version
        self._audit, self._still, self._uploads = audit, still, uploads
        self._bodies = Bodies()
        self._waiting = Counted(WAITS_PER_KEY_MAX, WAITS_MAX, "claims that wait")
        self._claimants, self._doubled = Claimants(service.news, self._outlook), Doubled(self._waiting)

    def endpoint(self, operation: Operation) -> Any:
        """The route of an operation."""

        async def asked(request: Request) -> Response:
            return answer(await self._asked(operation, request))

        return asked

    async def _asked(self, operation: Operation, request: Request) -> Any:
        access: Access = request.scope["access"]
        # Before the body is read: who may not do it learns nothing of what would be wrong with it.
        if (refusal := access.refusal(operation.name, ())) is not None:
            raise refusal
        async with self._bodies.of(request, access.key_id) as body:
            ask = with_key(await self._received(operation, body), access)
            try:
                told = await self._answered(operation, request, access, ask)
            except Error as error:
                self._audit.done(request, operation.name, ask, error)
                raise
        self._audit.done(request, operation.name, ask)
        return told

    async def _received(self, operation: Operation, body: bytes) -> Any:
        """A large one not in the loop, in which everybody's heartbeats are answered."""
        read = partial(received, operation, body)
        return await self._service.in_thread(read) if len(body) > READ_BYTES_MAX else read()

    async def _answered(self, operation: Operation, request: Request, access: Access, ask: Any) -> Any:
        await check_reach(self._service, access, operation, ask)
        await self._uploads.check_named(access, ask)

        async def goes_on() -> bool:
            """Nothing is claimed for who has gone, or whose key is good no more."""
            if await request.is_disconnected():
                return False
            await self._still.check(request)
            return True

        until = time.monotonic() + (_wait_s(request) if operation is CLAIM else 0.0)

        async def answered(ask: Any) -> Any:
            if (left_s := until - time.monotonic()) <= 0:
                return await asked(ask)
            with self._waiting.one(access.key_id):
                return await self._claimants.granted(
                    access.tenant, ask, left_s, partial(asked, ask), goes_on, partial(self._next_s, access, ask)
                )

        async def asked(ask: Any) -> Any:
            return await self._service.ask(access.tenant, ask, _patience_ms(request))

        return await self._doubled.once(access, ask, answered, goes_on)

    async def _next_s(self, access: Access, ask: Claim) -> float | None:
        """When there may be something to claim by itself, though nobody tells of it."""
        if not ask.queues:
            return None
        glanced: Glanced = await self._service.ask(access.tenant, Glance(queues=ask.queues, kinds=ask.kinds))
        return None if glanced.next_ms is None else glanced.next_ms / limits.SECOND_MS

    async def _outlook(self, tenant: str, queues: Sequence[str]) -> Foreseen:
        foreseen: Foreseen = await self._service.ask(tenant, Outlook(queues=list(queues)))
        return foreseen

    async def whoami(self, request: Request) -> Response:
        """Who the credential is, and which store it reaches."""
        access: Access = request.scope["access"]
        store: Any = self._service.backend
        return answer(Whoami(
            tenant=access.tenant, name=access.name, role=access.role, scopes=sorted(access.scopes),
            queues=access.queues, store_id=store.store.identity.store_id, version=self._version, api=API,
        ))  # fmt: skip


def _wait_s(request: Request) -> float:
    if (given := request.query_params.get("wait")) is None:
        return 0.0
    return duration_ms("wait", given, most=WAIT_S_MAX * limits.SECOND_MS) / limits.SECOND_MS


def _patience_ms(request: Request) -> int | None:
    return whole(PATIENCE, request.headers.get(PATIENCE), "number of milliseconds")
