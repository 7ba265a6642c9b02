"""What a key that is bound to queues may reach: every task that a request names must be of one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from relet.core.access import Access
from relet.core.errors import Forbidden, NotFound
from relet.core.model import Handle
from relet.core.operation import Operation
from relet.core.rules.decide import Decide
from relet.core.rules.effect_queue import FindEffectQueue
from relet.core.rules.inspect import FindTask, ListTasks
from relet.core.rules.inspect_work import Effects
from relet.core.rules.park import Park
from relet.core.rules.queues import Queues
from relet.core.rules.set_queue import SetQueue
from relet.core.rules.sweep import SWEEP
from relet.server.service import KNOWN_MAX, Service


async def check_reach(service: Service, access: Access, operation: Operation, ask: Any) -> None:
    """Raises `Forbidden` for queues, and `NotFound` for tasks and effects, that the key is not bound to."""
    if access.queues is None or operation is SWEEP:  # which only writes down what time has decided
        return
    named, tasks, effects = list(_queues(ask)), set(_tasks(ask)), set(_effects(ask))
    if (refusal := access.refusal(operation.name, named)) is not None:
        raise refusal
    # Where a page goes on is no restriction of what it is of.
    if not named and not (tasks | effects) - {getattr(ask, "after", None)}:
        raise Forbidden(
            f"{operation.name}: this key is bound to the queues {', '.join(access.queues)}, and the request names "
            "none; name one of them, or use a key for all",
            field="queue",
        )
    # As for what does not exist: whether it does is none of this key's business.
    for task_id in tasks:
        if await _queue_of(service, access.tenant, task_id) not in access.queues:
            raise NotFound(f"task_id: there is no task {task_id} here", field="task_id", task_id=task_id)
    for effect_id in effects:
        if await service.ask(access.tenant, FindEffectQueue(effect_id=effect_id)) not in access.queues:
            raise NotFound(
                f"effect_id: there is no effect {effect_id} here", field="effect_id", effect=effect_id
            )  # fmt: skip


def with_key(ask: Any, access: Access) -> Any:
    """A question and its answer say whose they are by the credential, whatever was sent."""
    return msgspec.structs.replace(ask, key_id=access.key_id) if isinstance(ask, (Park, Decide)) else ask


async def _queue_of(service: Service, tenant: str, task_id: str) -> str:
    known = service.queues.get((tenant, task_id))
    if known is None:
        known = (await service.ask(tenant, FindTask(task_id=task_id))).queue
        service.queues[tenant, task_id] = known
        while len(service.queues) > KNOWN_MAX:
            service.queues.popitem(last=False)
    return known


def _queues(ask: Any) -> Iterator[str]:
    """The queues that a request names."""
    if isinstance(ask, (SetQueue, Queues)) and ask.name is not None:
        yield ask.name
    for holder in (ask, getattr(ask, "which", None), getattr(ask, "next", None)):
        if isinstance(found := getattr(holder, "queue", None), str):
            yield found
        yield from getattr(holder, "queues", None) or ()


def _tasks(value: Any) -> Iterator[str]:
    """The tasks that a request names, by id or by handle, however deep."""
    match value:
        case Handle():
            yield value.task_id
        case msgspec.Struct():
            if isinstance(value, ListTasks) and value.after is not None:
                yield value.after
            for name in value.__struct_fields__:
                inner = getattr(value, name)
                if name == "task_id" and isinstance(inner, str):
                    yield inner
                else:
                    yield from _tasks(inner)
        case list():
            for item in value:
                yield from _tasks(item)


def _effects(ask: Any) -> Iterator[str]:
    """The effects that a request names."""
    if isinstance(ask, Effects) and ask.after is not None:
        yield ask.after
    if isinstance(found := getattr(ask, "effect_id", None), str):
        yield found
