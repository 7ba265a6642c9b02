"""GET /metrics: the figures of the credential's tenant, for Prometheus to draw over time."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from relet.core import limits
from relet.core.access import Access
from relet.core.errors import Error
from relet.core.rules.inspect import STATS, CountTasks, QueueStats
from relet.core.rules.measure import Measure, Measured
from relet.server import figures
from relet.server.answers import HEADERS
from relet.server.exposition import MEDIA_TYPE, Board, exposition
from relet.server.health import Health
from relet.server.passing import Panel, Passing
from relet.server.reach import check_reach
from relet.server.service import Service

LOOK_EVERY_S: Final = 1.0
"""Figures of the store are so old at most, however many ask."""
STATES: Final = ("ready", "delayed", "live", "lapsed", "waiting", "failed", "cancelled")


class Metrics:
    """What passes through the service, by tenant, and what its store says when it is asked."""

    def __init__(self, service: Service, health: Health) -> None:
        self._service, self._health = service, health
        self._passing = Passing()
        self._panels: dict[str | None, Panel] = {}
        self._looks: dict[str, tuple[float, asyncio.Task[Board]]] = {}
        service.told.append(self.saw)

    def panel_of(self, tenant: str | None) -> Panel:
        """The figures of a tenant; of None those of requests without a good credential."""
        return self._panels.setdefault(tenant, Panel())

    def saw(self, tenant: str, ask: Any, answer: Any, asked_at: float) -> None:
        """A request at the store, and its answer."""
        self._passing.saw(self.panel_of(tenant), tenant, ask, answer, asked_at, time.monotonic())

    async def scrape(self, request: Request) -> Response:
        """All of a tenant; for a key that is bound to queues as little as `stats` of all of them is."""
        access: Access = request.scope["access"]
        if (refusal := access.refusal(STATS.name, ())) is not None:
            raise refusal
        await check_reach(self._service, access, STATS, CountTasks())
        store = await asyncio.shield(self._look(access.tenant))
        boards = (store, self._standing(), self.panel_of(access.tenant).board, self.panel_of(None).board)
        return Response(exposition(figures.FIGURES, boards), media_type=MEDIA_TYPE, headers=HEADERS)

    def _standing(self) -> Board:
        board, standing = Board(), self._health.standing()
        board.add(figures.READY, int(standing.ready))
        for figure, ms in (
            (figures.ANSWERED, standing.answered_ms_ago), (figures.WROTE, self._health.unwritten_ms()),
            (figures.LOOKED, self._health.unlooked_ms()), (figures.SILENT, standing.silent_ms),
        ):  # fmt: skip
            if ms is not None:
                board.most(figure, ms / limits.SECOND_MS)
        return board

    def _look(self, tenant: str) -> asyncio.Task[Board]:
        """Those who ask while there is an answer, or one is under way, share it."""
        now = time.monotonic()
        looked_at, look = self._looks.get(tenant, (float("-inf"), None))
        if look is None or (look.done() and now - looked_at >= LOOK_EVERY_S):
            look = asyncio.create_task(self._measured(tenant))
            self._looks[tenant] = now, look
        return look

    async def _measured(self, tenant: str) -> Board:
        board, panel, asked_at = Board(), self.panel_of(tenant), time.monotonic()
        board.add(figures.STREAMS, 0)
        try:
            measured: Measured = await self._service.ask(tenant, Measure())
        except Error:
            # What passes through the service is told all the same, and that the store is away shows in how it stands.
            return board
        self._health.answered(asked_at)
        for queue in measured.stats.queues:
            _draw(board, panel.queue(queue.queue), queue)
        for name, ready_ms in measured.ready_ms.items():
            board.most(figures.READY_OLDEST, ready_ms / limits.SECOND_MS, panel.queue(name))
        for reason, n in measured.stats.rejections.items():
            board.add(figures.REFUSED_WRITES, n, reason)
        lapsed, unknown = measured.lapsed, measured.unknown
        board.add(figures.LAPSED_OLDEST, 0 if lapsed is None else lapsed.expired_ms_ago / limits.SECOND_MS)
        board.add(figures.UNKNOWN, 0 if unknown is None else unknown.count)
        board.add(figures.UNKNOWN_OLDEST, 0 if unknown is None else max(0, unknown.age_ms) / limits.SECOND_MS)
        return board


def _draw(board: Board, label: str, queue: QueueStats) -> None:
    for state in STATES:
        board.add(figures.TASKS, getattr(queue, state), label, state)
    board.add(figures.AT_RISK, queue.at_risk, label)
    board.add(figures.RECONCILING, queue.reconciling, label)
    board.add(figures.DONE, queue.done, label)
    board.add(figures.TAKEOVERS, queue.takeovers, label)
    board.most(figures.READY_OLDEST, 0, label)
