"""Every operation, in one explicit list; clients, HTTP routes, the command line and the docs read it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

import msgspec

from relet.core.advice import Advice
from relet.core.doctor.condition import Condition
from relet.core.model import Event, Grant, Rejection, Task
from relet.core.rules.advise import Advise, advise
from relet.core.rules.attach import Attach, attach
from relet.core.rules.cancel import Batch, Cancel, CancelMany, cancel, cancel_many
from relet.core.rules.check import Check, Checked, check
from relet.core.rules.claim import Claim, claim
from relet.core.rules.complete import Complete, Completed, complete
from relet.core.rules.condition import AskCondition, condition
from relet.core.rules.decide import Decide, decide
from relet.core.rules.end_effect import EffectEnded, EndEffect, end_effect
from relet.core.rules.fail import Fail, fail
from relet.core.rules.finish import Ended
from relet.core.rules.glance import Glance, Glanced, glance
from relet.core.rules.inspect import (
    Changes,
    CountTasks,
    FindTask,
    History,
    ListTasks,
    Look,
    Looked,
    Page,
    Rejections,
    Stats,
    changes,
    find_task,
    history,
    list_tasks,
    look,
    rejections,
    stats,
)  # fmt: skip
from relet.core.rules.inspect_work import (
    Artifacts,
    Checkpoints,
    Effects,
    Referenced,
    StepPage,
    Steps,
    WaitPage,
    Waits,
    artifacts,
    checkpoints,
    effects,
    referenced,
    steps,
    waits,
)  # fmt: skip
from relet.core.rules.memo import Attached, Memo, ReadStep, Remembered, attached, memo, read_step
from relet.core.rules.park import Park, park
from relet.core.rules.progress import Noted, Progress, progress
from relet.core.rules.prune import Prune, prune
from relet.core.rules.queues import Queues, QueueState, queues
from relet.core.rules.reconcile import Reconcile, reconcile
from relet.core.rules.release import Release, release
from relet.core.rules.renew import Renew, Renewed, renew
from relet.core.rules.requeue import Requeue, RequeueMany, requeue, requeue_many
from relet.core.rules.save import Load, Save, Saved, load, save
from relet.core.rules.set_queue import SetQueue, set_queue
from relet.core.rules.signal import Signal, signal
from relet.core.rules.start_effect import Start, StartEffect, start_effect
from relet.core.rules.step import KeepStep, keep_step
from relet.core.rules.submit import Submit, submit
from relet.core.rules.sweep import Sweep, Swept, sweep
from relet.core.tx import QueueRow
from relet.core.work import Artifact, Checkpoint, Decision, Effect, Signalled
from relet.core.work_tx import Kept


class Operation(NamedTuple):
    """One verb: what is asked, what is answered, the rule between them, and what transports must know."""

    name: str
    request: type[msgspec.Struct]
    answer: Any
    rule: Callable[..., Coroutine[Any, Any, Any]]
    summary: str
    writes: bool = True
    durable: bool = True
    """Acknowledged means on disk; only renewals are not, since losing one loses nothing but time."""
    replay_safe: bool = True
    """The same request may be sent again when its outcome is unknown."""
    for_agents: bool = True
    unlinks: bool = False
    """Removes rows with all that refer to them, and so need not have the engine look for those."""


OPERATIONS: Final = (
    Operation("submit", Submit, list[Task], submit, "Put tasks into a queue, all or none."),
    Operation("claim", Claim, list[Grant], claim, "Take tasks under new leases."),
    Operation("check", Check, Checked, check, "Is this lease yours at this instant."),
    Operation("renew", Renew, list[Renewed], renew, "Keep leases that you still hold.", durable=False),
    Operation("save", Save, Saved, save, "Keep a named value for the next holder."),
    Operation("load", Load, msgspec.Raw, load, "Read a value saved by any holder of the task.", writes=False),
    Operation("keep_step", KeepStep, Kept, keep_step, "Keep the result of a call for the next holder."),
    Operation("attach", Attach, Artifact, attach, "Publish stored bytes by name."),
    Operation("progress", Progress, Noted, progress, "Note where the work stands."),
    Operation("start_effect", StartEffect, Start, start_effect, "Record a side effect before it is tried."),
    Operation("end_effect", EndEffect, EffectEnded, end_effect, "Say what became of a side effect."),
    Operation("complete", Complete, Completed, complete, "Hand in results; with next, claim again."),
    Operation("fail", Fail, Ended, fail, "End an attempt that went wrong."),
    Operation("release", Release, Ended, release, "Give a task back unfinished; costs no attempt."),
    Operation("park", Park, Ended, park, "Wait for a person, a signal or a time without holding the task."),
    Operation("decide", Decide, Decision, decide, "Answer an open question.", for_agents=False),
    Operation("signal", Signal, Signalled, signal, "Send a value to a task."),
    Operation("reconcile", Reconcile, Effect, reconcile, "Say what became of an unknown effect.", for_agents=False),
    Operation("cancel", Cancel, Task, cancel, "Stop a task.", for_agents=False),
    Operation("cancel_many", CancelMany, Batch, cancel_many, "Stop all tasks that match.", for_agents=False),
    Operation(
        "requeue", Requeue, Task, requeue, "Give a dead letter another life.", replay_safe=False, for_agents=False,
    ),
    Operation(
        "requeue_many", RequeueMany, Batch, requeue_many, "Give all dead letters that match another life.",
        for_agents=False,
    ),
    Operation("sweep", Sweep, Swept, sweep, "Close what has lapsed and what is overdue.", for_agents=False),
    Operation(
        "prune", Prune, Batch, prune, "Remove finished tasks that are old enough.", for_agents=False, unlinks=True,
    ),
    Operation("set_queue", SetQueue, QueueRow, set_queue, "Set the knobs of a queue.", for_agents=False),
    Operation(
        "glance", Glance, Glanced, glance, "Is there something to claim, or when might there be.", writes=False,
        for_agents=False,
    ),
    Operation("look", Look, Looked, look, "The lease of a handle.", writes=False),
    Operation("task", FindTask, Task, find_task, "One task as it stands.", writes=False),
    Operation("tasks", ListTasks, list[Task], list_tasks, "A page of tasks.", writes=False),
    Operation("history", History, list[Event], history, "What happened to a task.", writes=False),
    Operation("changes", Changes, Page, changes, "What changed since.", writes=False),
    Operation("memo", Memo, Remembered, memo, "What the next holder need not do again.", writes=False),
    Operation("read_step", ReadStep, msgspec.Raw, read_step, "One large kept result.", writes=False),
    Operation("attached", Attached, Artifact, attached, "The newest artifact of a name.", writes=False),
    Operation("steps", Steps, StepPage, steps, "The kept calls of a task.", writes=False),
    Operation("checkpoints", Checkpoints, list[Checkpoint], checkpoints, "The saved values of a task.", writes=False),
    Operation("artifacts", Artifacts, list[Artifact], artifacts, "The attached bytes of a task.", writes=False),
    Operation("waits", Waits, WaitPage, waits, "What people are asked.", writes=False),
    Operation("effects", Effects, list[Effect], effects, "Side effects and their receipts.", writes=False),
    Operation(
        "referenced", Referenced, list[str], referenced, "Which stored bytes are still named.", writes=False,
        for_agents=False,
    ),
    Operation("advise", Advise, list[Advice], advise, "Which settings fit a queue.", writes=False),
    Operation("stats", CountTasks, Stats, stats, "How many tasks stand where.", writes=False),
    Operation(
        "condition", AskCondition, Condition, condition, "What somebody may have to act on.", writes=False,
        for_agents=False,
    ),
    Operation(
        "queues", Queues, list[QueueState], queues, "Limits of queues, and why nothing is granted.", writes=False
    ),
    Operation("rejections", Rejections, list[Rejection], rejections, "Writes that were refused.", writes=False),
)  # fmt: skip

BY_REQUEST: Final = {operation.request: operation for operation in OPERATIONS}
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
