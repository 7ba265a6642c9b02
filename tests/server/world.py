"""One of everything that a tenant can have, and every operation of the catalog on it."""

import hashlib

import msgspec

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

CANARY = "canary-of-tenant-"
CONTRACT = Contract(kind=ContractKind.OPAQUE)


def raw(value):
    return msgspec.Raw(msgspec.json.encode(value))


class World:
    """A tenant's tasks: one held, one parked with a question, one ready, one done; what it holds says whose it is."""

    def __init__(self, served, tenant, queue="q"):
        self.served, self.tenant, self.queue, self.tag = served, tenant, queue, f"{tenant}-{queue}"
        self.canary = raw({"says": f"{CANARY}{self.tag}"})
        for name in ("held", "asking", "done"):
            setattr(self, name, self._claimed(name))
        self.ask(Submit(queue=queue, kind="k", tasks=[NewTask(id=self.id("ready"), input=self.canary)]))
        self.bytes = f"bytes of {self.tag}".encode()
        self.digest = hashlib.sha256(self.bytes).hexdigest()
        served.db.files.place.put(self.bytes)
        self.ask(self.attach())
        self.ask(KeepStep(handle=self.held, name="s", slot="#1", value=self.canary, took_ms=1))
        self.ask(Save(handle=self.held, name="main", value=self.canary))
        self.effect = self.ask(StartEffect(
            handle=self.held, name="pay", payload=self.canary, contract=CONTRACT, timeout_ms=1_000, call_id="c",
            key=f"order-{self.tag}",
        )).id  # fmt: skip
        self.ask(Park(handle=self.asking, name="publish", kind=WaitKind.APPROVAL, ask=self.canary))
        self.ask(Complete(completions=[Completion(handle=self.done, result=self.canary)]))

    def ask(self, request):
        return self.served.of(self.tenant).call(request)

    def id(self, name):
        return f"{self.tag}-{name}"

    def attach(self):
        return Attach(
            handle=self.held, name="page.png", uri=f"artifact:{self.digest}", sha256=self.digest, size=len(self.bytes)
        )

    def _claimed(self, name):
        self.ask(Submit(
            queue=self.queue, kind="k", tasks=[NewTask(id=self.id(name), input=self.canary)], ttl_ms=3_600_000
        ))  # fmt: skip
        (grant,) = self.ask(Claim(holder="A", task_id=self.id(name)))
        return grant.handle

    def requests(self):
        """Every operation that is on what this world has, in words of nobody's; each would do or tell something."""
        held, task_id = self.held, self.id("held")
        completion = Completion(handle=held, result=raw(1))
        return [
            Submit(queue=self.queue, kind="k", tasks=[NewTask(id=self.id("child"), input=raw(1))], under=held),
            Claim(holder="B", task_id=self.id("ready")),
            Claim(holder="B", task_id=self.id("ready"), handle=held),
            Check(handle=held), Renew(handles=[held]), Save(handle=held, name="main", value=raw(1)),
            Load(handle=held, name="main"),
            KeepStep(handle=held, name="s", slot="#2", value=raw(1), took_ms=1), self.attach(),
            Progress(handle=held, note="n"),
            StartEffect(
                handle=held, name="mail", payload=raw(1), contract=CONTRACT, timeout_ms=1_000, call_id="d", key="x"
            ),
            EndEffect(handle=held, effect_id=self.effect, attempt=1, outcome=Outcome.APPLIED, receipt=raw(1)),
            Complete(completions=[completion]),
            Complete(completions=[], next=Claim(holder="B", task_id=self.id("ready"))),
            Complete(completions=[], next=Claim(holder="B", task_id=self.id("ready"), handle=held)),
            Fail(handle=held, error="e"), Release(handle=held),
            Park(handle=held, name="p", kind=WaitKind.APPROVAL, ask=raw(1)),
            Decide(
                task_id=self.id("asking"), name="publish", kind=DecisionKind.ACCEPT, by="eve", value=raw(None)
            ),
            Signal(task_id=self.id("asking"), name="go", call_id="s", payload=raw(1)),
            Reconcile(effect_id=self.effect, outcome=Outcome.APPLIED, by="eve"),
            Cancel(task_id=task_id, reason="r"), Requeue(task_id=self.id("done")), Look(handle=held),
            FindTask(task_id=task_id), ListTasks(which=TaskFilter(), after=task_id), History(task_id=task_id),
            Changes(after=0, task_id=task_id), Memo(handle=held), ReadStep(handle=held, name="s", slot="#1"),
            Attached(handle=held, name="page.png"), Steps(task_id=task_id), Checkpoints(task_id=task_id),
            Artifacts(task_id=task_id), Waits(task_id=self.id("asking")), Effects(after=self.effect),
            Effects(task_id=task_id), Rejections(task_id=task_id),
        ]  # fmt: skip

    def sweeping(self):
        """The operations that name no single thing: they are on all of a tenant, or of a queue."""
        return [
            Claim(holder="B", queues=[self.queue], n=10), CancelMany(which=TaskFilter(), reason="r"),
            RequeueMany(which=TaskFilter()), Sweep(), Prune(older_ms=60_000), SetQueue(name=self.queue, paused=True),
            Glance(queues=[self.queue]), ListTasks(which=TaskFilter()), Changes(after=0), Waits(), Effects(),
            Referenced(digests=["e" * 64]), Advise(), CountTasks(), AskCondition(), Queues(), Rejections(),
        ]  # fmt: skip
