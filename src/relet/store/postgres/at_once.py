"""Hot verbs answered by few statements of this engine's own; whatever is not plain is left to the pure rule."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from relet.core import limits
from relet.core.errors import Error, Unavailable
from relet.core.model import Handle, Task
from relet.core.payload import encode
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.guard import proven
from relet.core.rules.renew import Renew, Renewed, renew
from relet.core.rules.submit import Submit, new_row, submit
from relet.store.claim_at_once import claim_at_once
from relet.store.complete_at_once import complete_at_once
from relet.store.postgres.faults import BUSY
from relet.store.postgres.runner import NotAtOnce
from relet.store.postgres.tx import PostgresTx
from relet.store.proof import all_proven
from relet.store.rows import view_of

Rule = Callable[[Any, Any], Coroutine[Any, Any, Any]]
UNHELD: Final = (None,) * 6
"""In place of the lease of a task that nobody has held."""


async def renew_at_once(tx: PostgresTx, ask: Renew) -> list[Renewed | Error]:
    """Renew together what is proven, open, live, in time and not about to reach its cap; the rule judges the rest.

    What somebody else has locked is passed over and told apart: it is neither renewed nor lost.
    """
    sure = ask.handles if all_proven(tx.run.secret, ask.handles) else [one for one in ask.handles if proven(tx, one)]
    left: dict[int, int] = {}
    if sure:
        now_ms, wall_ms = await tx.run.instants() if tx.run.steered else (0, 0)
        params = {
            "tokens": _tokens(sure), "tenant": tx.tenant, "ttl_ms": ask.ttl_ms or None, "now_ms": now_ms,
            "wall_ms": wall_ms, "late_share": limits.LATE_SHARE,
        }  # fmt: skip
        left = dict(await tx.run.all("extend_leases", params))
    made: dict[int, Renewed | Error] = {left_ms: Renewed(left_ms=left_ms) for left_ms in set(left.values())}
    # By the handle and not by its token: another one of the same token may be a forgery.
    told = {id(one): made[left[one.token]] for one in sure if one.token in left}
    rest = [one for one in ask.handles if id(one) not in told]
    if rest:
        locked = await _locked(tx, [one for one in rest if proven(tx, one)])
        told |= {id(one): _is_locked(one) for one in rest if one.token in locked and proven(tx, one)}
        asked = [one for one in rest if id(one) not in told]
        judged = await renew(tx, msgspec.structs.replace(ask, handles=asked)) if asked else []
        told |= {id(one): answer for one, answer in zip(asked, judged, strict=True)}
    return [told[id(one)] for one in ask.handles]


async def _locked(tx: PostgresTx, handles: list[Handle]) -> set[int]:
    """Which of these somebody else has locked; the others are locked by us from here on."""
    if not handles:
        return set()
    params = {"tokens": _tokens(handles), "tenant": tx.tenant}
    free = {row[0] for row in await tx.run.all("lock_free_leases", params)}
    known = {row[0] for row in await tx.run.all("find_leases", params)}
    return known - free


def _is_locked(handle: Handle) -> Unavailable:
    return Unavailable(
        f"token {handle.token}: another transaction has its row locked just now; it was not renewed, and is not "
        "lost. Try again before it expires",
        code=BUSY, token=handle.token,
    )  # fmt: skip


def _tokens(handles: list[Handle]) -> str:
    return msgspec.json.encode([one.token for one in handles]).decode()


async def submit_at_once(tx: PostgresTx, ask: Submit) -> list[Task] | Error:
    """Insert tasks that are all new. The rule is asked where one of them is there already, or under a lease."""
    if ask.under is not None or ask.share is not None or len({new.id for new in ask.tasks}) < len(ask.tasks):
        return await submit(tx, ask)
    at = await tx.instants()
    model = new_row(tx, ask, "", at)
    rows = [(new.id, bytes(new.input).decode()) for new in ask.tasks]
    inserted = tx.run.later("insert_tasks", {
        **msgspec.structs.asdict(model), "rows": msgspec.json.encode(rows).decode(), "at_ms": at.now_ms,
        "detail": encode("detail", {"queue": ask.queue}),
    })  # fmt: skip
    tx.look_for_tombstones([task_id for task_id, _ in rows])
    made = inserted()
    if len(made) < len(rows):
        raise NotAtOnce
    await tx.run.do("count_submitted", {"tenant": tx.tenant, "queue": ask.queue, "n": len(made)})
    seqs = {task_id: seq for seq, task_id in made}
    fields = msgspec.structs.astuple(model)
    # The order of the fields begins with seq, tenant, id.
    return [
        msgspec.structs.replace(
            view_of((text, *UNHELD, seqs[task_id], tx.tenant, task_id, *fields[3:]), at), created=True
        )
        for task_id, text in rows
    ]


def after_the_first_try(rule: Rule) -> Rule:
    """A call that is repeated waits for all that may be its first try, and is asked of the rule once they have ended.

    In another transaction: one that sees what they left, whatever it is isolated by. A request id needs none of it.
    """

    async def asked(tx: PostgresTx, ask: Claim | Complete) -> Any:
        claim = ask.next if isinstance(ask, Complete) else ask
        if claim is not None and claim.again and claim.request_id is None:
            await tx.wait_for_takers()
            raise NotAtOnce
        return await rule(tx, ask)

    return asked


AT_ONCE: Final[dict[type, Rule]] = {
    Renew: renew_at_once, Claim: after_the_first_try(claim_at_once),
    Complete: after_the_first_try(complete_at_once), Submit: submit_at_once,
}  # fmt: skip
"""By the request; the rule of the catalog answers all others."""
