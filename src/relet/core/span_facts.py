"""What the spans of a trace say of a task, under the same names wherever they are made."""

from __future__ import annotations


def span_facts(
    task_id: str, token: int, queue: str | None = None, attempt: int | None = None
) -> dict[str, str | int]:
    """Attributes of a span: whose work it is, as far as that is known there."""
    facts: dict[str, str | int] = {"relet.task_id": task_id, "relet.token": token}
    if queue is not None:
        facts["relet.queue"] = queue
    if attempt is not None:
        facts["relet.attempt"] = attempt
    return facts
