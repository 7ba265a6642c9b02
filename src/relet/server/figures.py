"""Every figure that the service tells, in one list; the dashboard, the alerts and the page about them name these."""

from __future__ import annotations

from typing import Final

from relet.server.exposition import Figure, Kind

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
WAITS: Final = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400)
SHARES: Final = (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)
"""A heartbeat in time leaves two thirds."""
_QUEUE: Final = ("queue",)

TASKS: Final = Figure("relet_tasks", Kind.GAUGE, "Tasks that are not done, by where they stand.", ("queue", "state"))
AT_RISK: Final = Figure(
    "relet_leases_at_risk", Kind.GAUGE, "Live leases whose next heartbeat is overdue; part of the live ones.", _QUEUE
)
RECONCILING: Final = Figure(
    "relet_tasks_reconciling", Kind.GAUGE,
    "Tasks that wait until somebody says what became of an effect; part of the waiting ones.", _QUEUE,
)  # fmt: skip
DONE: Final = Figure("relet_tasks_done_total", Kind.COUNTER, "Tasks that were completed.", _QUEUE)
TAKEOVERS: Final = Figure("relet_takeovers_total", Kind.COUNTER, "Grants of tasks whose lease had lapsed.", _QUEUE)
REFUSED_WRITES: Final = Figure(
    "relet_refused_writes_total", Kind.COUNTER, "Writes that were refused under a lost lease.", ("reason",)
)
READY_OLDEST: Final = Figure(
    "relet_ready_oldest_seconds",
    Kind.GAUGE,
    "How long the oldest task that a claim could take has been ready.",
    _QUEUE,
)
LAPSED_OLDEST: Final = Figure(
    "relet_lapsed_oldest_seconds", Kind.GAUGE,
    "How long ago the oldest lease expired that nobody took back; 0 until half a ttl has passed.",
)  # fmt: skip
UNKNOWN: Final = Figure("relet_effects_unknown", Kind.GAUGE, "Effects of which nobody knows whether they happened.")
UNKNOWN_OLDEST: Final = Figure("relet_effects_unknown_oldest_seconds", Kind.GAUGE, "How long the oldest is unknown.")
CLAIM_LATENCY: Final = Figure(
    "relet_claim_latency_seconds", Kind.HISTOGRAM,
    "From when a task was submitted, or due, to its first grant; both through this service.", _QUEUE, WAITS,
)  # fmt: skip
RENEWAL_MARGIN: Final = Figure(
    "relet_renewal_margin_ratio", Kind.HISTOGRAM,
    "What was left of a lease when its renewal came, as a share of its ttl; 0 when it came too late.", _QUEUE, SHARES,
)  # fmt: skip
TAKEOVER: Final = Figure(
    "relet_takeover_seconds", Kind.HISTOGRAM,
    "From the last heartbeat of a holder that fell silent to the grant to the next.", _QUEUE, WAITS,
)  # fmt: skip
REQUESTS: Final = Figure(
    "relet_request_seconds", Kind.HISTOGRAM, "How long requests took, by what was asked and what came of it.",
    ("operation", "code"), SECONDS,
)  # fmt: skip
REFUSED: Final = Figure(
    "relet_requests_refused_total", Kind.COUNTER, "Requests that were turned away for who asked, or how much.",
    ("reason",),
)  # fmt: skip
STREAMS: Final = Figure("relet_streams_open", Kind.GAUGE, "Streams of changes and of news that are open.")
READY: Final = Figure(
    "relet_service_ready", Kind.GAUGE, "1 while requests should be sent here, as /readyz says; else 0."
)
ANSWERED: Final = Figure(
    "relet_store_answered_seconds", Kind.GAUGE, "How long ago the store was asked something that it answered."
)
WROTE: Final = Figure(
    "relet_store_wrote_seconds", Kind.GAUGE,
    "How long ago the service's own upkeep began a write that was committed, or began itself where none was yet.",
)  # fmt: skip
LOOKED: Final = Figure(
    "relet_news_looked_seconds", Kind.GAUGE,
    "How long ago the watch for changes began a look that succeeded, or began itself where none has yet.",
)  # fmt: skip
SILENT: Final = Figure(
    "relet_news_silent_seconds", Kind.GAUGE,
    "How long nothing has proven that the database's line of notifications is up; none over a file.",
)  # fmt: skip

FIGURES: Final = (
    TASKS,
    AT_RISK,
    RECONCILING,
    DONE,
    TAKEOVERS,
    REFUSED_WRITES,
    READY_OLDEST,
    LAPSED_OLDEST,
    UNKNOWN,
    UNKNOWN_OLDEST,
    CLAIM_LATENCY,
    RENEWAL_MARGIN,
    TAKEOVER,
    REQUESTS,
    REFUSED,
    STREAMS,
    READY,
    ANSWERED,
    WROTE,
    LOOKED,
    SILENT,
)
