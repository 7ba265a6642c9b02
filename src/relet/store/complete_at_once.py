"""complete, for many at once: where all are plain, three statements write the rows of all; else the rule judges."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from relet.core.errors import Error
from relet.core.model import Cause, End, Grant, State
from relet.core.payload import digest
from relet.core.rules.complete import DONE, Complete, Completed, Completion, complete
from relet.core.rules.finish import Ended
from relet.store.claim_at_once import claim_at_once
from relet.store.proof import all_proven
from relet.store.sql import SqlTx

FEW: Final = 3
"""Up to so many are judged by the rule, one by one."""
_TOLD: Final = msgspec.json.encode(DONE).decode()


def complete_at_once(tx: SqlTx, ask: Complete) -> Coroutine[Any, Any, Completed | Error]:
    """As the rule, which is asked where there are few, or where a request id says what follows."""
    if len(ask.completions) <= FEW or (ask.next is not None and ask.next.request_id is not None):
        return complete(tx, ask)
    return _complete_many(tx, ask)


async def _complete_many(tx: SqlTx, ask: Complete) -> Completed | Error:
    outcomes: list[Ended | Error] = []
    if await _end_all(tx, ask.completions):
        outcomes += [DONE] * len(ask.completions)
    else:
        judged = await complete(tx, msgspec.structs.replace(ask, next=None))
        assert isinstance(judged, Completed), "only what follows is refused as a whole"
        outcomes = judged.outcomes
    grants: list[Grant] | Error = []
    if ask.next is not None and any(isinstance(item, Ended) for item in outcomes):
        grants = await claim_at_once(tx, ask.next)
    return Completed(outcomes=outcomes, grants=grants)


async def _end_all(tx: SqlTx, completions: list[Completion]) -> bool:
    """End the leases, if each of them is proven, live, asked about once, and no more is to be done than that."""
    tokens = [item.handle.token for item in completions]
    if not all_proven(tx.run.secret, [item.handle for item in completions]) or len(set(tokens)) < len(tokens):
        return False
    run, now_ms = tx.run, (await tx.instants()).now_ms
    asked = {"tokens": msgspec.json.encode(tokens).decode(), "tenant": tx.tenant, "now_ms": now_ms}
    found = await run.all("look_endings", {**asked, "own_locks": msgspec.json.encode(run.own_locks()).decode()})
    now_ms, wall_ms = await tx.instants()
    if [token for token, _, _, _ in found] != tokens:
        return False
    results = [str(item.result, "utf-8") for item in completions]
    seqs = [run.next_event() for _ in found]
    run.do_all("end_lease", [
        (End.COMPLETED, now_ms, wall_ms, digest(result), _TOLD, token)
        for result, token in zip(results, tokens, strict=True)
    ])  # fmt: skip
    run.do_all("add_event", [
        (seq, task_seq, last_event, Cause.COMPLETED, State.DONE, token, holder, now_ms, wall_ms, "{}")
        for seq, (token, task_seq, holder, last_event) in zip(seqs, found, strict=True)
    ])  # fmt: skip
    run.do_all("complete_task", [
        (State.DONE, None, None, None, result, wall_ms, seq, task_seq)
        for result, seq, (_, task_seq, _, _) in zip(results, seqs, found, strict=True)
    ])  # fmt: skip
    return True
