"""The audit log as the service writes it: apart from the requests that it tells of, and never with what they hold."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from relet.client.redacting import log_named
from relet.core import limits
from relet.core.access import KEY, NEEDS, Access, Scope
from relet.core.errors import Error, Forbidden
from relet.core.rules.audit import Act, AddAudit, ListAudit
from relet.core.whoami import PREFIX
from relet.server.answers import answer
from relet.server.keys import ShutOut
from relet.server.numbers import whole
from relet.server.service import Service

WATCHED: Final = frozenset({Scope.APPROVE, Scope.OPERATE, Scope.AUDIT, Scope.ADMIN})
"""What needs one of these is told of, whether it was done or not."""
AUDIT: Final = "audit"
OK: Final = "ok"
WRITE_EVERY_S: Final = 0.2
AGAIN_S: Final = 2.0
PENDING_MAX: Final = 50_000
"""Lines that wait for a store that does not answer; beyond them the oldest are lost, and the process says so."""
_TARGETS: Final = ("task_id", "effect_id", "queue", "name")
_SHOWN_CHARS: Final = 100
log = log_named("relet.server")


class Audit:
    """Lines on their way into the store, in their order."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pending: deque[tuple[float, Act]] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._lost = 0

    def done(self, request: HTTPConnection, operation: str, ask: Any, error: Error | None = None) -> None:
        """Something that only few may do was done, or failed. What a credential does not allow is `refused`."""
        if not isinstance(error, Forbidden) and NEEDS.get(operation) in WATCHED:
            self._add(request, operation, OK if error is None else error.code, next(_targets(ask), None))

    def refused(self, request: HTTPConnection, error: Error) -> None:
        """A credential did not allow it, or there was none. One that was good once is told of with its tenant."""
        if isinstance(error, Forbidden):
            whose = error.whose if isinstance(error, ShutOut) else None
            self._add(request, operation_at(request.url.path), error.code, None, whose)

    def _add(
        self, request: HTTPConnection, operation: str, outcome: str, target: str | None, whose: Access | None = None
    ) -> None:  # fmt: skip
        access: Access | None = request.scope.get("access", whose)
        who = (None, None, None) if access is None else (access.key_id, access.name, access.tenant)
        act = Act(
            key_id=who[0], key_name=who[1], tenant=who[2], operation=operation, outcome=outcome, target=target,
            address=address_of(request),
        )  # fmt: skip
        if len(self._pending) >= PENDING_MAX:
            self._pending.popleft()
            self._lost += 1
        self._pending.append((time.monotonic(), act))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_later())

    async def _write_later(self) -> None:
        pause_s = WRITE_EVERY_S
        while self._pending:
            await asyncio.sleep(pause_s)
            try:
                await self.write()
            except Error as wrong:
                if self._service.has_ended:
                    return
                log.warning("the audit log cannot be written now, and will be (%s)", wrong.code)
                pause_s = AGAIN_S

    async def write(self) -> None:
        """All that waits. Raises `Error` where the store does not take it, and keeps it then."""
        while self._pending:
            lines = [self._pending[n] for n in range(min(len(self._pending), limits.AUDIT_ITEMS_MAX))]
            now = time.monotonic()
            acts = [msgspec.structs.replace(act, ago_ms=int((now - at) * 1_000)) for at, act in lines]
            lost = self._lost
            await self._service.operate(AddAudit(acts=acts))
            # Those that made room meanwhile were the first of these, and are written.
            made_room = min(self._lost - lost, len(lines))
            self._lost -= made_room
            for _ in range(len(lines) - made_room):
                self._pending.popleft()
        if self._lost:
            log.error("%d lines of the audit log were lost: the store did not take them for too long", self._lost)
            self._lost = 0

    async def close(self) -> None:
        """What waits is written; nothing is said any more."""
        if self._writing is not None:
            self._writing.cancel()
            with suppress(asyncio.CancelledError):
                await self._writing
        with suppress(Error):
            await self.write()

    async def page(self, request: Request) -> Response:
        """Of the credential's tenant, newest first from `before` on; with `after` from there, oldest first."""
        access: Access = request.scope["access"]
        if (refusal := access.lacks(Scope.AUDIT, AUDIT)) is not None:
            raise refusal
        before, after, limit = (
            whole(name, request.query_params.get(name), f"whole number of {least} to {most}", least=least, most=most)
            for name, least, most in (
                ("before", 1, limits.TOKEN_MAX), ("after", 0, limits.TOKEN_MAX), ("limit", 1, limits.PAGE_ITEMS_MAX),
            )
        )  # fmt: skip
        found = await self._service.operate(
            ListAudit(tenant=access.tenant, before=before, after=after, limit=limit or limits.PAGE_ITEMS)
        )
        self._add(request, AUDIT, OK, None)
        return answer(found)


def operation_at(path: str) -> str:
    """What was asked for, as it may be written down: a path is a stranger's text, and may hold what is secret."""
    name = path.removeprefix(f"{PREFIX}/")
    return name if name in NEEDS or name == AUDIT else KEY.sub("lt_…", path)[:_SHOWN_CHARS]


def address_of(connection: HTTPConnection) -> str | None:
    """Where it comes from, as this machine sees it, or a proxy that it believes: other headers, anybody can write."""
    return None if connection.client is None else connection.client.host


def _targets(ask: Any) -> Iterator[str]:
    for holder in (ask, getattr(ask, "which", None)):
        for name in _TARGETS:
            if isinstance(found := getattr(holder, name, None), str):
                yield found
