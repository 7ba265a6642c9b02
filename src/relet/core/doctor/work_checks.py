"""Findings about the work in a store: leases, claims, effects, questions, dead letters."""

from __future__ import annotations

from typing import Final

from relet.core import limits
from relet.core.doctor.condition import Condition, ReadyKind, RecentClaims
from relet.core.doctor.report import Found, Problem, WorkCheck, amiss, duration
from relet.core.pasting import command, literal


def lapsed(work: Condition, tenant: str | None) -> Found:
    """Whatever expired is taken back soon."""
    if (oldest := work.lapsed) is None:
        return Found("none that expired long ago")
    return amiss(
        f"{oldest.count} not taken back",
        f"the lease of task {oldest.task_id} in queue {oldest.queue} expired {duration(oldest.expired_ms_ago)} ago "
        f"(holder {oldest.holder}, token {oldest.token}, ttl {duration(oldest.ttl_ms)}), and nobody has taken it "
        f"back: no worker runs; {oldest.count} such lease(s) in all",
        f"start a worker of queue {oldest.queue}{_of(tenant)}, or take back what has lapsed: relet sweep",
        task_id=oldest.task_id, queue=oldest.queue, holder=oldest.holder, token=oldest.token,
        expired_ms_ago=oldest.expired_ms_ago, count=oldest.count,
    )  # fmt: skip


def _of(tenant: str | None) -> str:
    return "" if tenant is None else f" and tenant {tenant}"


def heartbeats(work: Condition, tenant: str | None) -> Found:
    """Holders renew in time."""
    if (worst := work.quiet) is None:
        return Found("none that missed two")
    return amiss(
        f"{worst.count} missed two",
        f"{worst.holder} has {duration(worst.left_ms)} left of a ttl of {duration(worst.ttl_ms)} on task "
        f"{worst.task_id} in queue {worst.queue} (token {worst.token}) and has missed two heartbeats; {worst.count} "
        "such lease(s) in all",
        "see whether that process lives and has the processor: " + command("show", worst.task_id, tenant=tenant),
        task_id=worst.task_id, queue=worst.queue, holder=worst.holder, token=worst.token, left_ms=worst.left_ms,
        count=worst.count,
    )  # fmt: skip


def settings(work: Condition, tenant: str | None) -> Found:
    """No ttl is so short, or so capped, that a healthy holder loses it."""
    problems = [
        Problem(
            f"queue {one.name} has max_hold {duration(one.max_hold_ms)}, less than its ttl {duration(one.ttl_ms)}: "
            "no lease lasts a ttl",
            f'set a longer one: db.queue({literal(one.name)}, max_hold="{-(-one.ttl_ms // 1_000)}s") or more',
            {"queue": one.name, "ttl_ms": one.ttl_ms, "max_hold_ms": one.max_hold_ms},
        )
        for one in work.queues
        if one.max_hold_ms is not None and one.ttl_ms is not None and one.max_hold_ms < one.ttl_ms
    ]
    problems += [
        Problem(
            f"leases of kind {one.kind} in queue {one.queue} are granted for {duration(one.last_ttl_ms)}: a pause "
            "of a second, which a busy machine makes, loses them",
            "measure, then choose: " + command("advise", one.queue, tenant=tenant),
            {"queue": one.queue, "kind": one.kind, "ttl_ms": one.last_ttl_ms},
        )
        for one in work.recent
        if one.last_ttl_ms < limits.DOCTOR_TTL_MS
    ]
    return Found(f"ttls of {len(work.recent)} kinds", tuple(problems))


def losses(work: Condition, tenant: str | None) -> Found:
    """Leases end by their holders, and seldom by silence."""
    problems = [
        Problem(
            f"{one.lapsed} of the last {one.count} leases of kind {one.kind} in queue {one.queue} lapsed",
            "see what ended them, and whether the ttl fits: " + command("advise", one.queue, tenant=tenant),
            {"queue": one.queue, "kind": one.kind, "lapsed": one.lapsed, "leases": one.count},
        )
        for one in work.recent
        if one.lapsed >= limits.DOCTOR_LOSSES_LEAST and one.lapsed >= limits.DOCTOR_LOSS_SHARE * one.count
    ]
    seen = (
        f"{sum(one.lapsed for one in work.recent)} of the last {sum(one.count for one in work.recent)} leases lapsed"
    )
    return Found(seen, tuple(problems))


def repeats(work: Condition, tenant: str | None) -> Found:
    """Work that begins gets somewhere."""
    if (worst := work.repeated) is None:
        return Found("none that begins in vain")
    return amiss(
        f"{worst.count} in vain",
        f"task {worst.task_id} of kind {worst.kind} in queue {worst.queue} was claimed and given back at once "
        f"{worst.leases} times in the last {duration(worst.span_ms)}, and nothing of its work was kept; "
        f"{worst.count} such task(s) in all",
        f"see why: {command('history', worst.task_id, tenant=tenant)}; let its handler save as it goes, or release "
        "it with a delay; or end it: " + command("cancel", worst.task_id, tenant=tenant),
        task_id=worst.task_id, queue=worst.queue, kind=worst.kind, leases=worst.leases, span_ms=worst.span_ms,
        count=worst.count,
    )  # fmt: skip


def claims(work: Condition, tenant: str | None) -> Found:
    """Ready tasks are claimed: somebody works on their queue, and has a handler for their kind."""
    problems = [_unclaimed(work, one, tenant) for one in work.ready if _is_unclaimed(work, one)]
    return Found(f"{len(work.ready)} kinds are ready", tuple(problems))


def _is_unclaimed(work: Condition, one: ReadyKind) -> bool:
    """Has a task waited though it is its turn: no pause, no limit, nobody at work on what stands before it."""
    queue = next((queue for queue in work.queues if queue.name == one.queue), None)
    patience_ms = limits.DOCTOR_UNCLAIMED_MS + (0 if queue is None else queue.apart_ms)
    if queue is not None and (queue.paused or queue.held_back is not None):
        return False
    if work.wall_ms - one.ready_wall_ms < patience_ms or (one.queue, one.kind) in work.busy:
        return False
    claims = [claim for claim in work.recent if claim.queue == one.queue]
    if any(claim.kind == one.kind and claim.last_wall_ms >= one.ready_wall_ms for claim in claims):
        return False
    if any(_passed_over(one, claim) for claim in claims):
        return True
    # Who holds another task of the queue may be about to come to this one, and so may who took one just now.
    is_busy = any(name == one.queue for name, _ in work.busy)
    return not is_busy and all(work.wall_ms - claim.last_wall_ms >= patience_ms for claim in claims)


def _passed_over(one: ReadyKind, claim: RecentClaims) -> bool:
    """Was a task taken that stands behind this one in the same line, though this one was ready."""
    is_behind = (-claim.last_priority, claim.last_seq) > (-one.priority, one.seq)
    return one.in_line and claim.last_share == one.share and claim.last_wall_ms >= one.ready_wall_ms and is_behind


def _unclaimed(work: Condition, one: ReadyKind, tenant: str | None) -> Problem:
    others = sorted(
        claim.kind for claim in work.recent if claim.queue == one.queue and claim.last_wall_ms >= one.ready_wall_ms
    )
    waits = f"{one.count} task(s) of kind {one.kind} are ready in queue {one.queue}, {one.task_id} for " + duration(
        work.wall_ms - one.ready_wall_ms
    )
    detail = {"queue": one.queue, "kind": one.kind, "ready": one.count, "task_id": one.task_id, "claimed": others}
    if others:
        return Problem(
            f"{waits}; workers took {', '.join(others)} from it meanwhile, and none of this kind: they have no "
            "handler for it, or have ended since",
            f"start a worker that has it (@app.task({literal(one.kind)}, queue={literal(one.queue)})), or: "
            + command("cancel", one.task_id, tenant=tenant),
            detail,
        )
    return Problem(
        f"{waits}; nobody has claimed anything of that queue since",
        command("worker", "MODULE:APP", options=("--queues", one.queue), tenant=tenant), detail,
    )  # fmt: skip


def effects(work: Condition, tenant: str | None) -> Found:
    """What became of each effect is known, or found out soon."""
    if (oldest := work.unknown_effects) is None:
        return Found("none unknown for long")
    return amiss(
        f"{oldest.count} unknown",
        f"nobody knows for {duration(oldest.age_ms)} whether effect {oldest.id} of task {oldest.task_id} has "
        f"happened; {oldest.count} such effect(s) in all",
        "look there, then say it: " + command("show", oldest.task_id, tenant=tenant),
        effect=oldest.id, task_id=oldest.task_id, age_ms=oldest.age_ms, count=oldest.count,
    )  # fmt: skip


def dead_letters(work: Condition, tenant: str | None) -> Found:
    """No task has failed for good lately."""
    problems = [
        Problem(
            f"{one.count} task(s) of queue {one.queue} failed for good"
            + (f" with {one.code}" if one.code else "")
            + f", {one.task_id} among them",
            f"{command('show', one.task_id, tenant=tenant)}; then: "
            + command("requeue", options=("--all", "--queue", one.queue), tenant=tenant),
            {"queue": one.queue, "code": one.code, "count": one.count, "task_id": one.task_id},
        )
        for one in work.dead
    ]
    return Found(
        f"{sum(one.count for one in work.dead)} dead letters of the last {duration(limits.DOCTOR_DEAD_MS)}",
        tuple(problems),
    )


def questions(work: Condition, tenant: str | None) -> Found:
    """Whoever is asked answers."""
    if (oldest := work.stalled) is None:
        return Found("none open for long")
    return amiss(
        f"{oldest.count} open for long",
        f"question {oldest.id} of task {oldest.task_id} has been open for {duration(oldest.age_ms)} and has no time "
        f"limit; {oldest.count} such question(s) in all",
        f"answer it ({command('waits', tenant=tenant)}), and give the next ones a timeout= with a default=",
        task_id=oldest.task_id, name=oldest.id, age_ms=oldest.age_ms, count=oldest.count,
    )  # fmt: skip


def timeouts(work: Condition, tenant: str | None) -> Found:
    """Waits end when their time is over."""
    if (oldest := work.unanswered) is None:
        return Found("none overdue")
    return amiss(
        f"{oldest.count} overdue",
        f"the time of question {oldest.id} of task {oldest.task_id} was over {duration(oldest.age_ms)} ago, and "
        f"nobody has ended the wait: no worker runs; {oldest.count} such wait(s) in all",
        f"start a worker of its queue{_of(tenant)}, or: relet sweep",
        task_id=oldest.task_id, name=oldest.id, age_ms=oldest.age_ms, count=oldest.count,
    )  # fmt: skip


WORK_CHECKS: Final = (
    WorkCheck("lapsed", lapsed),
    WorkCheck("heartbeats", heartbeats),
    WorkCheck("settings", settings),
    WorkCheck("losses", losses),
    WorkCheck("repeats", repeats),
    WorkCheck("claims", claims),
    WorkCheck("effects", effects),
    WorkCheck("dead-letters", dead_letters),
    WorkCheck("questions", questions),
    WorkCheck("timeouts", timeouts),
)
