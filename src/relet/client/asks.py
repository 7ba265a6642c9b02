"""What callers say, as requests: parsed here once, for the blocking and the awaiting client alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from relet.client.belief import Belief
from relet.client.files import raw
from relet.client.ids import new_call_id, new_id
from relet.client.renewal import ttl_ms
from relet.core import border, limits
from relet.core.border import invalid, shown
from relet.core.model import GivenBack, Handle, State
from relet.core.rules.advise import Advise
from relet.core.rules.cancel import Cancel, CancelMany
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.fail import Fail
from relet.core.rules.grant import Knobs
from relet.core.rules.inspect import Changes, CountTasks, FindTask, History, ListTasks, Rejections
from relet.core.rules.prune import Prune
from relet.core.rules.queues import Queues
from relet.core.rules.release import Release
from relet.core.rules.requeue import Requeue, RequeueMany
from relet.core.rules.save import Load, Save
from relet.core.rules.set_queue import SetQueue
from relet.core.rules.submit import NewTask, Submit
from relet.core.tx import TaskFilter


def task_id(value: Any, field: str = "id") -> str:
    """The id of a task."""
    return border.name(field, value, most=limits.ID_CHARS_MAX)


def submit(
    queue: Any, inputs: Sequence[Any], ids: Sequence[Any] | None, *, kind: Any = None, priority: Any = 0,
    delay: Any = None, at: Any = None, max_attempts: Any = None, max_losses: Any = None, ttl: Any = None,
    timeout: Any = None, max_hold: Any = None, deadline: Any = None, exclusive: Any = None, share: Any = None,
    labels: Any = None, under: Handle | None = None,
) -> Submit:  # fmt: skip
    """Tasks for one queue; ids are made here where none are given."""
    if delay is not None and at is not None:
        raise invalid("at", "cannot stand beside delay; give one of them")
    return Submit(
        queue=border.name("queue", queue), kind=border.name("kind", queue if kind is None else kind),
        tasks=_new_tasks(inputs, ids),
        priority=border.whole("priority", priority, least=-limits.PRIORITY_MAX, most=limits.PRIORITY_MAX),
        delay_ms=border.maybe_duration_ms("delay", delay) or 0,
        at_wall_ms=None if at is None else border.wall_ms("at", at),
        deadline_wall_ms=None if deadline is None else border.wall_ms("deadline", deadline),
        exclusive=_key("exclusive", exclusive), share=_key("share", share), labels=border.labels(labels), under=under,
        **_limits(ttl, timeout, max_hold, max_attempts, max_losses),
    )  # fmt: skip


def _new_tasks(inputs: Any, ids: Any) -> list[NewTask]:
    if isinstance(inputs, (str, bytes, dict)) or not isinstance(inputs, Iterable):
        raise invalid("inputs", f"{shown(inputs)} is not a list; give one input for each task")
    values = list(inputs)
    if len(values) > limits.SUBMIT_ITEMS_MAX:
        raise invalid("inputs", f"has {len(values)} items; give at most {limits.SUBMIT_ITEMS_MAX} in one call")
    if ids is not None and not isinstance(ids, (list, tuple)):
        raise invalid("ids", f"{shown(ids)} is not a list; give one id, or None, for each input")
    names: Sequence[Any] = [None] * len(values) if ids is None else ids
    if len(names) != len(values):
        raise invalid("ids", f"has {len(names)} items for {len(values)} inputs; give one each")
    single = len(values) == 1
    return [
        NewTask(
            id=new_id() if name is None else task_id(name),
            input=raw("input" if single else f"inputs[{n}]", value),
        )
        for n, (name, value) in enumerate(zip(names, values, strict=True))
    ]


def _key(field: str, value: Any) -> str | None:
    if isinstance(value, bool):
        raise invalid(field, 'is a bool; give a key, such as "customer-7"')
    return border.maybe_name(field, value)


def _limits(ttl: Any, timeout: Any, max_hold: Any, max_attempts: Any, max_losses: Any) -> dict[str, Any]:
    return {
        "ttl_ms": ttl_ms(ttl),
        "timeout_ms": border.maybe_duration_ms("timeout", timeout, least=1),
        "max_hold_ms": border.maybe_duration_ms("max_hold", max_hold, least=limits.TTL_MS_MIN),
        "max_attempts": _count("max_attempts", max_attempts),
        "max_losses": _count("max_losses", max_losses),
    }


def _count(field: str, value: Any) -> int | None:
    return None if value is None else border.whole(field, value, least=1, most=limits.ATTEMPTS_MAX)


def knobs(**given: Any) -> Knobs:
    """What a handler sets for the tasks of its kind."""
    base, cap = given.pop("base", None), given.pop("cap", None)
    return Knobs(
        backoff_base_ms=border.maybe_duration_ms("base", base), backoff_cap_ms=border.maybe_duration_ms("cap", cap),
        **_limits(
            given.get("ttl"), given.get("timeout"), given.get("max_hold"), given.get("max_attempts"),
            given.get("max_losses"),
        ),
    )  # fmt: skip


def claim(
    queue: Any, holder: str, *, n: Any = 1, ttl: Any = None, kinds: Any = None, request_id: Any = None,
    task: Any = None, handle: Any = None, handlers: dict[str, Knobs] | None = None,
) -> Claim:  # fmt: skip
    """Up to `n` tasks of these queues, or the one task named."""
    if (queue is None) == (task is None):
        raise invalid("queue", "and task_id: give one of them; a queue, a list of queues, or a task's id")
    if handle is not None and task is None:
        raise invalid("handle", "goes with task_id: it lets its last holder take the task before its delay ends")
    if kinds is not None and task is not None:
        raise invalid("kinds", "does not go with task_id, which names the very task; leave it out")
    return Claim(
        holder=border.name("holder", holder),
        queues=[] if queue is None else _names("queue", queue, limits.QUEUES_PER_CLAIM_MAX),
        task_id=None if task is None else task_id(task, "task_id"),
        n=border.whole("n", n, least=1, most=limits.CLAIM_ITEMS_MAX),
        kinds=None if kinds is None else _names("kinds", kinds, limits.KINDS_PER_CLAIM_MAX),
        ttl_ms=ttl_ms(ttl), handlers=handlers or {},
        handle=None if handle is None else handle_of(handle),
        request_id=border.maybe_name("request_id", request_id), call_id=new_call_id(),
    )  # fmt: skip


def wait_s(value: Any) -> float:
    """How long to wait for something, in seconds of real time."""
    return border.duration_ms("wait", value, most=limits.WAIT_MS_MAX) / 1_000


def once_more(before: Claim) -> Claim:
    """The same claim, as a call of its own, for one task."""
    return msgspec.structs.replace(before, n=1, request_id=None, call_id=new_call_id(), again=False)


def _names(field: str, value: Any, most: int) -> list[str]:
    if isinstance(value, str):
        return [border.name(field, value)]
    names = value
    if not isinstance(names, (list, tuple, set, frozenset)) or not 1 <= len(names) <= most:
        raise invalid(field, f"{shown(value)}: give a name, or a list of 1 to {most} names")
    clean = list(dict.fromkeys(border.name(field, item) for item in names))
    return sorted(clean) if isinstance(names, (set, frozenset)) else clean  # a repeated request must read the same


def handle_of(value: Any) -> Handle:
    """The handle of a lease, or of its opaque string."""
    inner = getattr(value, "handle", value)
    return border.handle(inner)


def beliefs(leases: Any) -> list[Belief]:
    """What this process knows of several leases."""
    if isinstance(leases, (str, bytes)) or not isinstance(leases, Iterable):
        raise invalid("leases", f"{shown(leases)} is not a list; give leases as claims answer them")
    found = [getattr(lease, "belief", None) for lease in leases]
    if None in found:
        raise invalid("leases", "holds what is no lease; give leases as claims answer them, or db.lease(handle)")
    return cast("list[Belief]", found)


def completions(pairs: Any) -> tuple[list[Belief], list[Any]]:
    """Several leases, and the result of each."""
    items = list(pairs) if isinstance(pairs, Iterable) else [pairs]
    if not all(isinstance(item, (tuple, list)) and len(item) == 2 for item in items):  # noqa: PLR2004 - a pair
        raise invalid("completions", "is not a list of pairs; give (lease, result) for each")
    return beliefs([lease for lease, _ in items]), [result for _, result in items]


def save(handle: Handle, value: Any, name: Any) -> Save:
    """A checkpoint."""
    return Save(handle=handle, name=border.name("name", name), value=raw("value", value))


def load(handle: Handle, name: Any) -> Load:
    """A checkpoint to read."""
    return Load(handle=handle, name=border.name("name", name))


def complete(pairs: Iterable[tuple[Handle, Any]], following: Claim | None = None) -> Complete:
    """Results to hand in."""
    items = [Completion(handle=handle, result=raw("result", result)) for handle, result in pairs]
    if len(items) > limits.COMPLETE_ITEMS_MAX:
        raise invalid("completions", f"has {len(items)} items; give at most {limits.COMPLETE_ITEMS_MAX}")
    return Complete(completions=items, next=following)


def fail(handle: Handle, error: Any, retry: Any, delay: Any, code: Any) -> Fail:
    """An attempt that went wrong."""
    return Fail(
        handle=handle, error=border.text(error), retry=border.flag("retry", retry),
        delay_ms=border.maybe_duration_ms("delay", delay), code=border.maybe_name("code", code),
    )  # fmt: skip


def release(handle: Handle, delay: Any, why: GivenBack = GivenBack.RELEASED) -> Release:
    """A lease to give back."""
    return Release(handle=handle, delay_ms=border.duration_ms("delay", delay), why=why)


def cancel(value: Any, reason: Any) -> Cancel:
    """A task to stop."""
    return Cancel(task_id=task_id(value), reason=border.text(reason))


def cancel_many(which: TaskFilter, reason: Any, dry_run: Any, after: int) -> CancelMany:
    """One batch of tasks to stop."""
    return CancelMany(
        which=which, reason=border.text(reason), dry_run=border.flag("dry_run", dry_run), after=after,
        most=limits.BULK_ITEMS_MAX,
    )  # fmt: skip


def requeue(value: Any) -> Requeue:
    """A dead letter to revive."""
    return Requeue(task_id=task_id(value))


def requeue_many(which: TaskFilter, dry_run: Any, after: int) -> RequeueMany:
    """One batch of dead letters to revive."""
    return RequeueMany(which=which, dry_run=border.flag("dry_run", dry_run), after=after, most=limits.BULK_ITEMS_MAX)


def task_filter(given: Any, **conditions: Any) -> TaskFilter:
    """Conditions on tasks: `queue`, `kind`, `state`, `labels`, as a mapping or by name."""
    if given is not None and not isinstance(given, Mapping):
        raise invalid("filter", f"{shown(given)} is not a mapping; give conditions by name, as in queue='reports'")
    merged = {**(given or {}), **{key: value for key, value in conditions.items() if value is not None}}
    if odd := set(merged) - {"queue", "kind", "state", "labels"}:
        raise invalid("filter", f"has no condition {min(odd)!r}; there are queue, kind, state, labels")
    state = merged.get("state")
    try:
        state = None if state is None else State(state)
    except ValueError:
        raise invalid("state", f"{shown(state)} is none; there are {', '.join(State)}") from None
    return TaskFilter(
        queue=border.maybe_name("queue", merged.get("queue")), kind=border.maybe_name("kind", merged.get("kind")),
        state=state, labels=border.labels(merged.get("labels")),
    )  # fmt: skip


def find_task(value: Any) -> FindTask:
    """A task to look at."""
    return FindTask(task_id=task_id(value))


def list_tasks(which: TaskFilter, limit: Any, after: Any) -> ListTasks:
    """A page of tasks."""
    return ListTasks(which=which, limit=page(limit), after=None if after is None else task_id(after, "after"))


def history(value: Any, after: int = 0) -> History:
    """A page of a task's events."""
    return History(task_id=task_id(value), after=after)


def changes(after: Any, queue: Any, task: Any) -> Changes:
    """What changed since."""
    return Changes(
        after=None if after is None else border.whole("after", after, least=0, most=limits.TOKEN_MAX),
        queue=border.maybe_name("queue", queue), task_id=None if task is None else task_id(task, "task_id"),
    )  # fmt: skip


def rejections(task: Any, limit: Any, before: Any) -> Rejections:
    """A page of refused writes."""
    return Rejections(
        task_id=None if task is None else task_id(task, "task_id"), limit=page(limit),
        before=None if before is None else border.whole("before", before, least=0, most=limits.TOKEN_MAX),
    )  # fmt: skip


def stats(queue: Any) -> CountTasks:
    """Figures."""
    return CountTasks(queue=border.maybe_name("queue", queue))


def advise(queue: Any) -> Advise:
    """Which settings fit."""
    return Advise(queue=border.maybe_name("queue", queue))


def set_queue(
    name: Any, *, paused: Any, ttl: Any, timeout: Any, max_hold: Any, max_attempts: Any, max_losses: Any,
    concurrency: Any, share_concurrency: Any, rate: Any, retention: Any,
) -> SetQueue:  # fmt: skip
    """A queue's knobs and limits."""
    n, ms = border.maybe_rate("rate", rate) or (None, None)
    return SetQueue(
        name=border.name("queue", name), paused=None if paused is None else border.flag("paused", paused),
        concurrency=border.maybe_limit("concurrency", concurrency, most=limits.CONCURRENCY_MAX),
        share_concurrency=border.maybe_limit(
            "share_concurrency", share_concurrency, most=limits.CONCURRENCY_MAX
        ),
        rate=n, rate_ms=ms,
        retention_ms=0 if retention == border.LIFT else border.maybe_duration_ms(
            "retention", retention, least=limits.PRUNE_AGE_MS_MIN
        ),
        **_limits(ttl, timeout, max_hold, max_attempts, max_losses),
    )  # fmt: skip


def prune(queue: Any, older: Any, dry_run: Any, after: int) -> Prune:
    """One batch of tasks that leave."""
    return Prune(
        queue=border.maybe_name("queue", queue), dry_run=border.flag("dry_run", dry_run), after=after,
        older_ms=border.maybe_duration_ms("older", older, least=limits.PRUNE_AGE_MS_MIN),
    )  # fmt: skip


def queues(name: Any, share: Any, after: Any = "") -> Queues:
    """How one queue stands, or a page of all."""
    return Queues(
        name=border.maybe_name("name", name), share=_key("share", share), after=after, limit=limits.PAGE_ITEMS_MAX
    )


def page(limit: Any) -> int:
    """How many items a page may have."""
    return border.whole("limit", limit, least=1, most=limits.PAGE_ITEMS_MAX)
