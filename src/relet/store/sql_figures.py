"""The transaction port of who looks at the store as a whole, for every SQL engine; it only reads."""

from __future__ import annotations

from typing import Any, Final

from relet.store.runner import Params, Runner

FIGURES_STATEMENTS: Final = frozenset([
    "count_rejections", "count_ready", "count_delayed", "count_leased", "count_set_aside", "count_totals",
    "count_reconciling",
])  # fmt: skip
UNDONE: Final = ("ready", "delayed", "leased", "waiting", "failed", "cancelled")


class SqlFigures:
    """As the rules of looking ask it."""

    run: Runner
    tenant: str

    async def count_rejections(self) -> dict[str, int]:
        return dict(await self.run.all("count_rejections", {"tenant": self.tenant}))

    async def count_tasks(self, queue: str | None) -> list[dict[str, Any]]:
        counts: dict[str, dict[str, Any]] = {}
        params: Params = {"tenant": self.tenant, "queue": queue}
        timed = {**params, "now_ms": (await self.run.instants()).now_ms}
        for name, fields in (
            ("count_ready", ("ready",)),
            ("count_delayed", ("delayed",)),
            ("count_leased", ("leased", "live", "at_risk")),
            ("count_reconciling", ("reconciling",)),
            ("count_totals", ("submitted", "takeovers")),
        ):
            for row in await self.run.all(name, timed if name == "count_leased" else params):
                counts.setdefault(row[0], {"queue": row[0]}).update(zip(fields, row[1:], strict=True))
        for row in await self.run.all("count_set_aside", params):
            counts.setdefault(row[0], {"queue": row[0]})[row[1]] = row[2]
        for count in counts.values():
            count["lapsed"] = count.get("leased", 0) - count.get("live", 0)
            count["done"] = count.pop("submitted", 0) - sum(count.get(state, 0) for state in UNDONE)
        return [counts[name] for name in sorted(counts)]
