"""The credentials of the service: keys of its store, asked for anew by each request, or none at all."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from relet.core.access import SCOPES_OF, Access, Role, id_in, is_key
from relet.core.errors import Error, Forbidden
from relet.core.problem import NO_CREDENTIAL
from relet.core.rules.keys import FindKeys, FoundKey, NoteUses
from relet.server.service import Service
from relet.server.together import Together

NOTE_EVERY_S: Final = 30.0
LOOKS_MAX: Final = 100
"""Keys that are looked for at once, which takes about a millisecond: nobody waits long for it."""


class ShutOut(Forbidden):
    """A key opens nothing. Whose it was is for the log alone; None where nobody has shown that it was theirs."""

    def __init__(self, whose: Access | None) -> None:
        super().__init__(
            "the key of this request is none of this service's, has expired or was revoked; ask for another → "
            "relet token create NAME",
            code=NO_CREDENTIAL,
        )
        self.whose = whose


class StoreKeys:
    """Keys as `relet token` makes them. What was revoked or has expired opens nothing from its next request on."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._looks: Together[str, FoundKey | None] = Together(
            lambda ids: service.look(FindKeys(ids=list(ids))), LOOKS_MAX, side_by_side=service.side_by_side
        )
        self._used: set[str] = set()
        self._noting: asyncio.Task[None] | None = None

    async def who(self, key: str | None) -> Access:
        """Whose it is. Raises `Forbidden`."""
        if key is None:
            raise Forbidden(
                "no credential came with this request; send a key → relet token create NAME --role worker, and then "
                "Authorization: Bearer KEY",
                code=NO_CREDENTIAL,
            )
        found = await self._found(key)
        # One answer for all of them: a stranger learns nothing of which ids there are.
        is_its_own = is_key(key, None if found is None else found.digest)
        if not is_its_own or found is None or not found.key.good:
            raise ShutOut(found.key.access if is_its_own and found is not None else None)
        self._note(found.key.id)
        return found.key.access

    async def _found(self, key: str) -> FoundKey | None:
        key_id = id_in(key)
        return None if key_id is None else await self._looks.answer(key_id)

    def _note(self, key_id: str) -> None:
        self._used.add(key_id)
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._note_later())

    async def _note_later(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._service.news.stopping.wait(), NOTE_EVERY_S)
        used, self._used = self._used, set()
        with suppress(Error):  # when it was used last is no reason to fail
            await self._service.operate(NoteUses(ids=sorted(used)))


class NoKeys:
    """Whoever reaches the service may do everything in one tenant; for a machine that nobody else uses."""

    def __init__(self, tenant: str) -> None:
        self._access = Access(
            key_id="-", name="nobody", tenant=tenant, role=Role.ADMIN, scopes=SCOPES_OF[Role.ADMIN], queues=None
        )

    async def who(self, key: str | None) -> Access:  # noqa: ARG002 - none is asked for
        """Everybody is the same."""
        return self._access
