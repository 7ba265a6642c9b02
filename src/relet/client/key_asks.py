"""What an operator says of API keys, as requests: parsed here once; and the random bytes that a key is made of."""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, TypeVar

from relet.core import border, limits
from relet.core.access import CHANCE_BYTES, Role, Scope, digest_of, new_key
from relet.core.border import invalid, shown
from relet.core.rules.keys import ListKeys, MakeKey, RevokeKey

Choice = TypeVar("Choice", bound=StrEnum)


def make_key(
    name: Any, role: Any, *, tenant: Any, queues: Iterable[Any] = (), scopes: Iterable[Any] = (), expires: Any = None
) -> tuple[MakeKey, str]:
    """A request for a new key, and its text, which nobody can make again; without queues it is for all of them."""
    names = list(dict.fromkeys(border.name("queue", queue) for queue in queues))
    if len(names) > limits.QUEUES_PER_KEY_MAX:
        raise invalid("queue", f"{len(names)} are named; give at most {limits.QUEUES_PER_KEY_MAX}, or none for all")
    key_id, text = new_key(os.urandom(CHANCE_BYTES))
    return MakeKey(
        id=key_id, digest=digest_of(text), name=border.name("name", name), tenant=border.name("tenant", tenant),
        role=_one_of("role", role, Role), scopes=[_one_of("scope", scope, Scope) for scope in scopes],
        queues=names or None, expires_ms=border.maybe_duration_ms("expires", expires, least=limits.SECOND_MS),
    ), text  # fmt: skip


def list_keys(after: Any, limit: Any, *, revoked: bool) -> ListKeys:
    """A page of keys; `after` is the id that the page before ended with."""
    most = limits.PAGE_ITEMS_MAX
    return ListKeys(
        after=border.name("after", after) if after else "", limit=border.whole("limit", limit, least=1, most=most),
        revoked=revoked,
    )  # fmt: skip


def revoke_key(which: Any) -> RevokeKey:
    """The key of an id, or of a name."""
    return RevokeKey(which=border.name("key", which))


def _one_of(field: str, value: Any, kind: type[Choice]) -> Choice:
    try:
        return kind(value)
    except ValueError as wrong:
        raise invalid(field, f"{shown(value)} is none; give one of {', '.join(kind)}") from wrong
