"""Whose stored bytes are: one place holds those of all tenants, and each reaches what it names or has sent itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from relet.artifacts.uri import uri_of
from relet.core.access import Access
from relet.core.errors import NotFound
from relet.core.payload import ADDRESS
from relet.core.rules.attach import Attach
from relet.core.rules.own_bytes import AskOwnBytes, OwnBytes
from relet.core.shapes import fields, shape
from relet.server.service import Service


class Uploads:
    """Remembers who has sent which bytes, beside the bytes: so every service of a store knows it, for as long."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def note(self, access: Access, digest: str) -> None:
        """This key has sent these bytes."""
        (mark,) = (await self._own(access, [digest])).marks
        await self._service.in_thread(lambda: self._service.place.put(mark.encode()), waits=True)

    async def check(self, access: Access, digests: list[str]) -> None:
        """Raises `NotFound` for bytes that the key may not reach, as for those that are not here."""
        if not digests:
            return
        own = await self._own(access, digests)
        for digest, mark in zip(digests, own.marks, strict=True):
            if digest not in own.named and not await self._was_sent(mark):
                raise not_here(digest)

    async def check_named(self, access: Access, ask: Any) -> None:
        """The same for all that a request would have a task name."""
        await self.check(access, sorted(set(_digests(ask))))

    async def _own(self, access: Access, digests: list[str]) -> OwnBytes:
        key_id = None if access.queues is None else access.key_id
        own: OwnBytes = await self._service.ask(
            access.tenant, AskOwnBytes(digests=digests, queues=access.queues, key_id=key_id)
        )
        return own

    async def _was_sent(self, mark: str) -> bool:
        uri = uri_of(hashlib.sha256(mark.encode()).hexdigest())
        return bool(await self._service.in_thread(lambda: self._service.place.exists(uri)))


def not_here(digest: str) -> NotFound:
    """Whether somebody else has them is nobody's business."""
    uri = uri_of(digest)
    return NotFound(
        f"artifact: there is nothing under {uri} here; send the bytes first → PUT /v1/artifacts/{digest}", uri=uri
    )


def _digests(value: Any) -> Iterator[str]:
    match value:
        case Attach():
            yield value.sha256
            yield value.uri.rpartition(":")[2]
        case msgspec.Raw():
            if found := ADDRESS.fullmatch(bytes(value)):
                yield found[1].decode()
        case msgspec.Struct():
            for name in _naming(type(value)):
                yield from _digests(getattr(value, name))
        case list():
            for item in value:
                yield from _digests(item)


@cache
def _naming(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields in which bytes can be named: a thousand heartbeats have none."""
    return tuple(name for name, hint in fields(struct).items() if _may_name(hint))


def _may_name(hint: Any) -> bool:
    wanted = shape(hint)
    if isinstance(wanted.kind, type) and issubclass(wanted.kind, msgspec.Struct):
        return wanted.kind is Attach or bool(_naming(wanted.kind))
    return wanted.kind is msgspec.Raw or any(_may_name(part) for part in wanted.parts)
