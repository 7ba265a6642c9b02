"""One request and one answer of every operation, from a real store: what a wire must carry."""

from dataclasses import dataclass
from typing import Any

import msgspec

from relet.core.catalog import BY_REQUEST
from relet.core.operation import Operation
from relet.core.rules.advise import Advise
from relet.core.rules.attach import Attach
from relet.core.rules.cancel import Cancel, CancelMany
from relet.core.rules.check import Check
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.condition import AskCondition
from relet.core.rules.decide import Decide
from relet.core.rules.end_effect import EndEffect
from relet.core.rules.fail import Fail
from relet.core.rules.glance import Glance
from relet.core.rules.grant import Knobs
from relet.core.rules.inspect import Changes, CountTasks, FindTask, History, ListTasks, Look, Rejections
from relet.core.rules.inspect_work import Artifacts, Checkpoints, Effects, Referenced, Steps, Waits
from relet.core.rules.memo import Attached, Memo, ReadStep
from relet.core.rules.park import Park
from relet.core.rules.progress import Progress
from relet.core.rules.prune import Prune
from relet.core.rules.queues import Queues
from relet.core.rules.reconcile import Reconcile
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew
from relet.core.rules.requeue import Requeue, RequeueMany
from relet.core.rules.save import Load, Save
from relet.core.rules.set_queue import SetQueue
from relet.core.rules.signal import Signal
from relet.core.rules.start_effect import StartEffect
from relet.core.rules.step import KeepStep
from relet.core.rules.submit import NewTask, Submit
from relet.core.rules.sweep import Sweep
from relet.core.tx import TaskFilter
from relet.core.work import Contract, ContractKind, DecisionKind, Outcome, WaitKind
from tests.core.scene import Scene

VALUE = {"error": {"words": ["ü", 1, None]}, "list": [1.5, True]}
RAW = msgspec.Raw(msgspec.json.encode(VALUE, order="sorted"))
DIGEST = "a" * 64
EVERY = TaskFilter(queue="q", labels={"team": "a"})


@dataclass
class Exchange:
    operation: Operation
    request: Any
    answer: Any


def talk():
    """Exchanges for all operations, most of them several times; refusals inside answers among them."""
    scene, said = Scene(), []

    def ask(request):
        said.append(Exchange(BY_REQUEST[type(request)], request, scene.backend.call(request)))
        return said[-1].answer

    new = [NewTask(id=f"t{n}", input=RAW) for n in range(6)]
    ask(Submit(queue="q", kind="k", tasks=new, labels={"team": "a"}, deadline_wall_ms=1_900_000_000_000, priority=3))
    ask(SetQueue(name="q", ttl_ms=60_000, paused=False))
    a, b, c, d = ask(Claim(holder="A", queues=["q"], n=4, handlers={"k": Knobs(max_losses=2)}, request_id="r"))
    ask(Claim(holder="A", queues=["empty"], kinds=["k"]))
    stranger = msgspec.structs.replace(a.handle, secret="0" * 32)
    ask(Renew(handles=[a.handle, stranger], ttl_ms=90_000))
    ask(Save(handle=a.handle, name="main", value=RAW))
    ask(Load(handle=a.handle, name="main"))
    ask(Load(handle=a.handle, name="other"))
    ask(Look(handle=a.handle))
    ask(Glance(queues=["q"]))
    done = [Completion(handle=a.handle, result=RAW), Completion(handle=stranger, result=RAW)]
    ask(Complete(completions=done, next=Claim(holder="A", queues=["q"])))
    following = Complete(completions=[], next=Claim(holder="B", queues=["q"], request_id="s"))
    ask(Release(handle=ask(following).grants[0].handle))
    ask(following)
    ask(Fail(handle=b.handle, error="no such page", retry=False, code="E404"))
    ask(Release(handle=c.handle, delay_ms=5))
    ask(Cancel(task_id="t3", reason="changed my mind"))
    ask(Look(handle=d.handle))
    ask(Renew(handles=[d.handle]))
    ask(Cancel(task_id="t2", reason="that one too"))
    ask(CancelMany(which=EVERY, reason="all", dry_run=True))
    ask(Requeue(task_id="t1"))
    ask(RequeueMany(which=EVERY))
    scene.pass_ms(120_000)
    ask(Sweep())
    ask(Prune())
    (grant,) = ask(Claim(holder="B", task_id="t4", queues=[], handle=None))
    assert grant.took_over is not None, "a takeover has to cross the wire as well"
    ask(FindTask(task_id="t0"))
    ask(ListTasks(which=EVERY, limit=3, after="t0"))
    ask(History(task_id="t0"))
    ask(Changes(after=2))
    ask(CountTasks())
    ask(Advise())
    ask(Advise(queue="nowhere"))
    ask(AskCondition())
    ask(Rejections())
    ask(SetQueue(name="q", concurrency=8, share_concurrency=2, rate=100, rate_ms=60_000))
    ask(Submit(queue="q", kind="k", tasks=[NewTask(id="s1", input=RAW)], share="customer-7"))
    ask(Queues())
    ask(Queues(name="q", share="customer-7"))
    of_durable_work(ask, grant.handle)
    return said


def of_durable_work(ask, handle):
    """Steps, artifacts, effects and waits of one task, and what everybody may see of them."""
    kept = {"handle": handle, "name": "search"}
    ask(Check(handle=handle))
    ask(KeepStep(**kept, slot="#1", value=RAW, fingerprint="f", took_ms=3, cost=0.5))
    ask(ReadStep(**kept, slot="#1"))
    ask(Attach(handle=handle, name="page.png", uri=f"artifact:{DIGEST}", sha256=DIGEST, size=7))
    ask(Attached(handle=handle, name="page.png"))
    ask(Progress(handle=handle, note="page 3 of 9"))
    ask(Save(handle=handle, name="main", value=RAW))
    contract = Contract(kind=ContractKind.KEYED, retention_ms=1_000, settles_ms=5, checked=True)
    effect = {"handle": handle, "payload": RAW, "contract": contract, "timeout_ms": 100}
    first = ask(StartEffect(**effect, name="pay", call_id="c1"))
    ask(EndEffect(handle=handle, effect_id=first.id, attempt=1, outcome=Outcome.APPLIED, receipt=RAW))
    ask(StartEffect(**effect, name="pay", call_id="c2"))
    second = ask(StartEffect(**effect, name="mail", call_id="c3", key="order-7"))
    ask(EndEffect(handle=handle, effect_id=second.id, attempt=1, outcome=Outcome.UNKNOWN, error="timeout"))
    ask(Park(handle=handle, name="publish", kind=WaitKind.APPROVAL, ask=RAW, timeout_ms=9_000))
    ask(Waits(queue="q"))
    ask(Decide(task_id=handle.task_id, name="publish", kind=DecisionKind.EDIT, by="ann", value=RAW))
    ask(Signal(task_id=handle.task_id, name="go", call_id="s1", payload=RAW))
    ask(Waits(task_id=handle.task_id))
    ask(Memo(handle=handle))
    ask(Reconcile(effect_id=second.id, outcome=Outcome.APPLIED, by="ann", receipt=RAW))
    ask(Effects(task_id=handle.task_id))
    ask(Steps(task_id=handle.task_id))
    ask(Checkpoints(task_id=handle.task_id))
    ask(Artifacts(task_id=handle.task_id))
    ask(Referenced(digests=[DIGEST, "b" * 64]))
