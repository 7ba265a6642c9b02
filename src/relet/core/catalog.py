"""Every operation, in one explicit list; clients, HTTP routes, the command line and the docs read it."""

from __future__ import annotations

from typing import Final

from relet.core.rules.advise import ADVISE
from relet.core.rules.attach import ATTACH
from relet.core.rules.cancel import CANCEL, CANCEL_MANY
from relet.core.rules.check import CHECK
from relet.core.rules.claim import CLAIM
from relet.core.rules.complete import COMPLETE
from relet.core.rules.condition import CONDITION
from relet.core.rules.decide import DECIDE
from relet.core.rules.end_effect import END_EFFECT
from relet.core.rules.fail import FAIL
from relet.core.rules.glance import GLANCE
from relet.core.rules.inspect import CHANGES, HISTORY, LOOK, REJECTIONS, STATS, TASK, TASKS
from relet.core.rules.inspect_work import ARTIFACTS, CHECKPOINTS, EFFECTS, REFERENCED, STEPS, WAITS
from relet.core.rules.memo import ATTACHED, MEMO, READ_STEP
from relet.core.rules.park import PARK
from relet.core.rules.progress import PROGRESS
from relet.core.rules.prune import PRUNE
from relet.core.rules.queues import QUEUES
from relet.core.rules.reconcile import RECONCILE
from relet.core.rules.release import RELEASE
from relet.core.rules.renew import RENEW
from relet.core.rules.requeue import REQUEUE, REQUEUE_MANY
from relet.core.rules.save import LOAD, SAVE
from relet.core.rules.set_queue import SET_QUEUE
from relet.core.rules.signal import SIGNAL
from relet.core.rules.start_effect import START_EFFECT
from relet.core.rules.step import KEEP_STEP
from relet.core.rules.submit import SUBMIT
from relet.core.rules.sweep import SWEEP

OPERATIONS: Final = (
    SUBMIT,
    CLAIM,
    CHECK,
    RENEW,
    SAVE,
    LOAD,
    KEEP_STEP,
    ATTACH,
    PROGRESS,
    START_EFFECT,
    END_EFFECT,
    COMPLETE,
    FAIL,
    RELEASE,
    PARK,
    DECIDE,
    SIGNAL,
    RECONCILE,
    CANCEL,
    CANCEL_MANY,
    REQUEUE,
    REQUEUE_MANY,
    SWEEP,
    PRUNE,
    SET_QUEUE,
    GLANCE,
    LOOK,
    TASK,
    TASKS,
    HISTORY,
    CHANGES,
    MEMO,
    READ_STEP,
    ATTACHED,
    STEPS,
    CHECKPOINTS,
    ARTIFACTS,
    WAITS,
    EFFECTS,
    REFERENCED,
    ADVISE,
    STATS,
    CONDITION,
    QUEUES,
    REJECTIONS,
)

BY_REQUEST: Final = {operation.request: operation for operation in OPERATIONS}
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
