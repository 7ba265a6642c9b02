"""Hot verbs answered by one statement of an engine's own; whatever is not plain is left to the pure rule.

Each stands for a rule of the catalog and has its shape. Tests run both on the same registers and find them equal.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec

from relet.core import limits
from relet.core.errors import Error
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.guard import proven
from relet.core.rules.renew import Renew, Renewed, renew
from relet.store.claim_at_once import claim_at_once
from relet.store.complete_at_once import complete_at_once
from relet.store.proof import all_proven
from relet.store.sql import SqlTx

Rule = Callable[[Any, Any], Coroutine[Any, Any, Any]]
RUN_LENGTH_LEAST: Final = 8
"""Shorter on average, and each token is sought by itself."""


class Span(NamedTuple):
    """Whose leases, for how long (None: the lease's own ttl), from when; what share of it a beat in time leaves."""

    tenant: str
    ttl_ms: int | None
    now_ms: int
    wall_ms: int
    own_locks: str
    """The locks of this process, as JSON: leases that are bound to them stay so."""
    late_share: float = limits.LATE_SHARE


async def renew_at_once(tx: SqlTx, ask: Renew) -> list[Renewed | Error]:
    """Renew together what is proven, open, live, in time and not about to reach its cap; the rule judges the rest."""
    sure = ask.handles if all_proven(tx.run.secret, ask.handles) else [one for one in ask.handles if proven(tx, one)]
    if not sure:
        return await renew(tx, ask)
    tokens = [handle.token for handle in sure]
    now_ms, wall_ms = await tx.run.instants()
    span = Span(tx.tenant, ask.ttl_ms or None, now_ms, wall_ms, msgspec.json.encode(tx.run.own_locks()).decode())
    if len(sure) == len(ask.handles) and (left_ms := await _extend_alike(tx, tokens, span)) is not None:
        return [Renewed(left_ms=left_ms)] * len(tokens)
    found = await tx.run.all("extend_leases", {**span._asdict(), "tokens": msgspec.json.encode(tokens).decode()})
    left: dict[int, int] = dict(found)
    # Most have the same time left: one answer serves them all.
    made: dict[int, Renewed | Error] = {left_ms: Renewed(left_ms=left_ms) for left_ms in set(left.values())}
    kept = {id(handle): made[left[handle.token]] for handle in sure if handle.token in left}
    rest = [handle for handle in ask.handles if id(handle) not in kept]
    judged = iter(await renew(tx, msgspec.structs.replace(ask, handles=rest)) if rest else ())
    return [kept[id(handle)] if id(handle) in kept else next(judged) for handle in ask.handles]


async def _extend_alike(tx: SqlTx, tokens: list[int], span: Span) -> int | None:
    """Renew all, where they were granted in long runs and will have the same time left: that time, else None.

    A run is one walk along the register, several times cheaper than a search for each and an answer from each.
    """
    distinct = sorted(set(tokens))
    gaps = [at for at, (one, other) in enumerate(pairwise(distinct), 1) if other - one > 1]
    if (len(gaps) + 1) * RUN_LENGTH_LEAST > len(distinct):
        return None
    asked = span._asdict()
    runs = [
        {**asked, "first": distinct[start], "last": distinct[end - 1]}
        for start, end in zip([0, *gaps], [*gaps, len(distinct)], strict=True)
    ]
    looks = [await tx.run.one("look_run", run) or (0, None, None) for run in runs]
    lefts = {left_ms for _, *both in looks for left_ms in both}
    if sum(n for n, _, _ in looks) != len(distinct) or len(lefts) != 1:
        return None
    left_ms = int(lefts.pop())
    await tx.run.do_many("extend_run", [{**run, "expires_ms": span.now_ms + left_ms} for run in runs])
    return left_ms


AT_ONCE: Final[dict[type, Rule]] = {
    Renew: renew_at_once, Claim: claim_at_once, Complete: complete_at_once,
}  # fmt: skip
"""By the request; the rule of the catalog answers all others."""
