"""Requests of durable work over a scene, with everything set that a test does not care about."""

from itertools import count

import msgspec

from relet.core import limits
from relet.core.rules.answer import Fallback
from relet.core.rules.decide import Decide
from relet.core.rules.end_effect import EndEffect
from relet.core.rules.inspect_work import Effects, Waits
from relet.core.rules.memo import Memo
from relet.core.rules.park import Park
from relet.core.rules.reconcile import Reconcile
from relet.core.rules.signal import Signal
from relet.core.rules.start_effect import StartEffect
from relet.core.rules.step import KeepStep
from relet.core.work import Contract, ContractKind, DecisionKind, Outcome, WaitKind

NUMBERS = count()
ASK = {"draft": "grain"}
OPAQUE = Contract(kind=ContractKind.OPAQUE)
NATURAL = Contract(kind=ContractKind.NATURAL)
CHECKED = Contract(kind=ContractKind.OPAQUE, checked=True)


def keyed(retention_ms, **more):
    return Contract(kind=ContractKind.KEYED, retention_ms=retention_ms, **more)


def raw(value):
    """As a client would send it: canonical JSON."""
    return msgspec.Raw(msgspec.json.encode(value, order="sorted"))


def plain(encoded):
    return msgspec.json.decode(encoded) if encoded else None


def claimed(scene, **options):
    (grant,) = scene.claim(**options)
    return grant


# -- waits ---------------------------------------------------------------------------------------------------------


def park(scene, grant, name="go", kind=WaitKind.APPROVAL, *, ask=ASK, **more):
    default = more.pop("default", None)
    fallback = None if default is None else Fallback(kind=default[0], value=raw(default[1]))
    return scene.ask(Park(handle=grant.handle, name=name, kind=kind, ask=raw(ask), fallback=fallback, **more))


def parked(scene, name="go", kind=WaitKind.APPROVAL, id="t", **more):
    """The grant of a new task, which is parked at once."""
    grant = scene.held(id)
    park(scene, grant, name, kind, **more)
    return grant


def decide(scene, kind=DecisionKind.ACCEPT, value=None, *, name="go", by="ann", id="t", **more):
    return scene.ask(Decide(task_id=id, name=name, kind=kind, by=by, value=raw(value), **more))


def signal(scene, payload=None, *, name="go", id="t", call_id=None):
    call_id = f"c{next(NUMBERS)}" if call_id is None else call_id
    return scene.ask(Signal(task_id=id, name=name, call_id=call_id, payload=raw(payload)))


def waits(scene, id="t"):
    return scene.ask(Waits(task_id=id)).waits


def decisions(scene, grant):
    """What a holder is told of answers."""
    return [(one.name, one.n, str(one.kind), one.value, one.by) for one in remembered(scene, grant).decisions]


def remembered(scene, grant, **more):
    return scene.ask(Memo(handle=grant.handle, **more))


# -- steps ---------------------------------------------------------------------------------------------------------


def keep(scene, grant, value=1, *, name="search", slot="#1", **more):
    return scene.ask(KeepStep(handle=grant.handle, name=name, slot=slot, value=raw(value), **more))


# -- effects -------------------------------------------------------------------------------------------------------


def start(scene, grant, name="pay", payload=1, *, contract=OPAQUE, call_id=None, timeout_ms=1_000, key=None):
    call_id = f"c{next(NUMBERS)}" if call_id is None else call_id
    return scene.ask(
        StartEffect(
            handle=grant.handle, name=name, payload=raw(payload), contract=contract, timeout_ms=timeout_ms, key=key,
            call_id=call_id,
        )
    )  # fmt: skip


def end(scene, grant, started, outcome=Outcome.APPLIED, receipt=None, **more):
    more.setdefault("attempt", started.attempt)
    return scene.ask(
        EndEffect(
            handle=grant.handle, effect_id=started.id, outcome=outcome,
            receipt=msgspec.UNSET if receipt is None else raw(receipt), **more,
        )
    )  # fmt: skip


def reconcile(scene, effect_id, outcome=Outcome.APPLIED, receipt=None, by="ann"):
    receipt = msgspec.UNSET if receipt is None else raw(receipt)
    return scene.ask(Reconcile(effect_id=effect_id, outcome=outcome, by=by, receipt=receipt))


def effects(scene, **which):
    return scene.ask(Effects(**which))


def effect(scene):
    """The only one that there is."""
    (found,) = effects(scene)
    return found


def counts_hold(scene):
    """Each task counts exactly those of its effects whose outcome is not known; answers the counts."""
    counted = {row[0]: row[1] for row in scene.rows("SELECT id, unsettled FROM tasks")}
    found = effects(scene, limit=limits.PAGE_ITEMS_MAX)
    opened = [one.task_id for one in found if one.state in {"started", "unknown"}]
    assert counted == {name: opened.count(name) for name in counted}
    return counted
