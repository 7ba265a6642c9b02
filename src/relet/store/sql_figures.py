"""The transaction port of who looks at the store as a whole, for every SQL engine; it only reads."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from relet.core import limits
from relet.core.advice import LateHolder, LeaseSample
from relet.core.doctor.condition import (
    Aged,
    DeadLetters,
    Lapsed,
    QueueKnobs,
    Quiet,
    ReadyKind,
    RecentClaims,
    Repeated,
)
from relet.core.model import End, LapsedBy
from relet.core.payload import digest
from relet.core.rules.tenants import Tenant
from relet.store.rows import Row
from relet.store.runner import Params, Runner
from relet.store.unreadable import WHOLE_MAX, stored

FIGURES_STATEMENTS: Final = frozenset([
    "count_rejections", "count_ready", "count_delayed", "count_leased", "count_set_aside", "count_totals",
    "count_reconciling", "find_lapsed", "find_quiet", "find_queue_knobs", "find_ready_kinds", "find_recent_claims",
    "find_busy", "find_repeated", "find_unknown", "find_stalled", "find_unanswered", "find_dead",
    "find_samples", "find_late_holders", "find_tenants",
])  # fmt: skip
STARVED: Final = digest(LapsedBy.HOLDER_EXPIRED)
SILENT: Final = digest(LapsedBy.MAX_SILENCE)
"""How a lease was ended whose holder let go of it by its own clock."""
UNDONE: Final = ("ready", "delayed", "leased", "waiting", "failed", "cancelled")


class SqlFigures:
    """As the rules of looking ask it."""

    run: Runner
    tenant: str

    async def find_tenants(self, after: str, limit: int) -> list[Tenant]:
        rows = await self.run.all("find_tenants", {"after": after, "limit": limit})
        return [Tenant(name=name, queues=queues) for name, queues in rows]

    async def count_rejections(self) -> dict[str, int]:
        return dict(await self._all("count_rejections"))

    async def count_tasks(self, queue: str | None) -> list[dict[str, Any]]:
        counts: dict[str, dict[str, Any]] = {}
        params: Params = {"tenant": self.tenant, "queue": queue}
        timed = {**params, "now_ms": (await self.run.instants()).now_ms}
        for name, fields in (
            ("count_ready", ("ready",)),
            ("count_delayed", ("delayed",)),
            ("count_leased", ("leased", "live", "at_risk")),
            ("count_reconciling", ("reconciling",)),
            # Those of the last two that were pruned; what is there is added below.
            ("count_totals", ("submitted", "takeovers", "failed", "cancelled")),
        ):
            for row in map(_counts, await self.run.all(name, timed if name == "count_leased" else params)):
                counts.setdefault(row[0], {"queue": row[0]}).update(zip(fields, row[1:], strict=True))
        for row in await self.run.all("count_set_aside", params):
            count = counts.setdefault(row[0], {"queue": row[0]})
            count[row[1]] = count.get(row[1], 0) + row[2]
        for count in counts.values():
            count["lapsed"] = count.get("leased", 0) - count.get("live", 0)
            count["done"] = count.pop("submitted", 0) - sum(count.get(state, 0) for state in UNDONE)
        return [counts[name] for name in sorted(counts)]

    async def find_lapsed(self, now_ms: int) -> Lapsed | None:
        count, task_id, queue, holder, token, ttl_ms, ago_ms = await self._one("find_lapsed", now_ms=now_ms)
        if not count:
            return None
        return Lapsed(
            count=count, task_id=task_id, queue=queue, holder=holder, token=token, ttl_ms=ttl_ms,
            expired_ms_ago=ago_ms,
        )  # fmt: skip

    async def find_quiet(self, now_ms: int) -> Quiet | None:
        count, task_id, queue, holder, token, ttl_ms, left_ms, _ = await self._one("find_quiet", now_ms=now_ms)
        if not count:
            return None
        return Quiet(
            count=count, task_id=task_id, queue=queue, holder=holder, token=token, ttl_ms=ttl_ms, left_ms=left_ms,
        )  # fmt: skip

    async def find_queue_knobs(self, limit: int) -> list[QueueKnobs]:
        return [
            QueueKnobs(name=name, paused=bool(paused), ttl_ms=ttl_ms, max_hold_ms=max_hold_ms)
            for name, paused, ttl_ms, max_hold_ms in await self._all("find_queue_knobs", limit=limit)
        ]

    async def find_ready_kinds(self, queue: str, most: int | None, limit: int) -> list[ReadyKind]:
        at = await self.run.instants()
        rows = await self._all(
            "find_ready_kinds", queue=queue, most=most, limit=limit, now_ms=at.now_ms, wall_ms=at.wall_ms
        )
        return [
            ReadyKind(
                queue=queue, kind=kind, count=count, task_id=task_id, ready_wall_ms=since_ms, priority=priority,
                seq=seq, share=share, in_line=bool(in_line),
            )
            for kind, count, task_id, since_ms, priority, seq, share, in_line in rows
        ]  # fmt: skip

    async def find_recent_claims(self, after_wall_ms: int, limit: int) -> list[RecentClaims]:
        return [
            RecentClaims(
                queue=queue, kind=kind, count=count, lapsed=lapsed, last_wall_ms=last_ms, last_ttl_ms=ttl_ms,
                last_priority=priority, last_seq=seq, last_share=share,
            )
            for queue, kind, count, lapsed, last_ms, ttl_ms, priority, seq, share in await self._all(
                "find_recent_claims", after=after_wall_ms, limit=limit
            )
        ]  # fmt: skip

    async def find_busy(self, now_ms: int) -> list[tuple[str, str]]:
        return [(queue, kind) for queue, kind in await self._all("find_busy", now_ms=now_ms)]

    async def find_repeated(self, wall_ms: int, least: int, limit: int) -> Repeated | None:
        row = await self._one("find_repeated", wall_ms=wall_ms, least=least, limit=limit)
        count, task_id, queue, kind, leases, span_ms = row
        if not count:
            return None
        return Repeated(count=count, task_id=task_id, queue=queue, kind=kind, leases=leases, span_ms=span_ms)

    async def find_unknown(self, before_wall_ms: int, wall_ms: int) -> Aged | None:
        return _aged(await self._one("find_unknown", before=before_wall_ms, wall_ms=wall_ms))

    async def find_stalled(self, before_wall_ms: int, wall_ms: int) -> Aged | None:
        return _aged(await self._one("find_stalled", before=before_wall_ms, wall_ms=wall_ms))

    async def find_unanswered(self, before_wall_ms: int, wall_ms: int) -> Aged | None:
        return _aged(await self._one("find_unanswered", before=before_wall_ms, wall_ms=wall_ms))

    async def find_dead(self, after_wall_ms: int, limit: int) -> list[DeadLetters]:
        return [
            DeadLetters(queue=queue, code=code, count=count, task_id=task_id)
            for queue, code, count, task_id, _ in await self._all("find_dead", after=after_wall_ms, limit=limit)
        ]

    async def find_samples(self, queue: str | None, limit: int) -> dict[str, list[LeaseSample]]:
        found: dict[str, list[LeaseSample]] = {}
        for row in await self._all("find_samples", queue=queue, limit=limit):
            found.setdefault(row[0], []).append(_sample(row))
        return found

    async def find_late_holders(self, queue: str | None, limit: int) -> dict[str, list[LateHolder]]:
        found: dict[str, list[LateHolder]] = {}
        for name, ttl_ms, late_ms in await self._all("find_late_holders", queue=queue, limit=limit, silent=SILENT):
            found.setdefault(name, []).append(LateHolder(ttl_ms=ttl_ms, late_ms=late_ms))
        return found

    async def _all(self, name: str, **params: Any) -> list[Row]:
        return await self.run.all(name, {"tenant": self.tenant, **params})

    async def _one(self, name: str, **params: Any) -> Row:
        (row,) = await self._all(name, **params)
        return row


@stored("figures of queue")
def _counts(row: Row) -> Row:
    for n in row[1:]:
        # An engine whose sum is beyond its integers answers a fraction.
        if type(n) is not int or not 0 <= n <= WHOLE_MAX:
            raise ValueError(f"{n} counts nothing")
    return row


class _Ended(NamedTuple):
    """The columns that a sample is made of, in their order."""

    queue: str
    ttl_ms: int
    max_hold_ms: int | None
    ended: str | None
    took_ms: int
    took_over: int
    late: int
    least_ms: int | None
    left_ms: int | None
    granted_ms: int
    end_digest: str | None


@stored("a lease of the queue")
def _sample(row: Row) -> LeaseSample:
    lease = _Ended(*row)
    late, least_ms, left_ms = lease.late, lease.least_ms, lease.left_ms
    is_lapsed = lease.ended == End.LAPSED
    if is_lapsed and left_ms is None:
        raise ValueError("it ended at no time")
    is_capped = lease.max_hold_ms is not None and lease.granted_ms >= lease.max_hold_ms
    let_go = is_lapsed and lease.end_digest is not None
    by_holder = not is_lapsed or lease.end_digest == STARVED
    if left_ms is not None and by_holder and not is_capped and left_ms < lease.ttl_ms * limits.LATE_SHARE:
        # Its holder ended it when a heartbeat was overdue: late as well, though it did not come.
        late, least_ms = late + 1, left_ms if least_ms is None else min(least_ms, left_ms)
    return LeaseSample(
        ttl_ms=lease.ttl_ms, max_hold_ms=lease.max_hold_ms, ended=None if lease.ended is None else End(lease.ended),
        took_ms=lease.took_ms, took_over=bool(lease.took_over), capped=is_lapsed and is_capped,
        died=is_lapsed and left_ms is not None and left_ms > 0 and not let_go, let_go=let_go, late_beats=late,
        least_left_ms=least_ms,
    )  # fmt: skip


def _aged(row: Row) -> Aged | None:
    count, name, task_id, age_ms = row
    return Aged(count=count, id=name, task_id=task_id, age_ms=age_ms) if count else None
