"""Each rule of the crash kit can fail: a real run with one thing in it changed breaks the rule that is about it."""

import tempfile
from pathlib import Path

import msgspec
import pytest

from relet.client.durable.sight import Saw
from relet.core.model import Cause, State
from relet.core.work import Contract, ContractKind, EffectState
from relet.testing.crash.case import case_of
from relet.testing.crash.drive import run
from relet.testing.crash.invariants import RULES, judge
from relet.testing.crash.nursery import Nurseries
from relet.testing.crash.plan import read
from relet.testing.crash.told_to_end import Ending
from relet.testing.crash.trace import Ack, Committed, Granted, Placed, Seen, Struck

change = msgspec.structs.replace


@pytest.fixture(scope="module")
def reading(request):
    """A run of the good app, in which the first holder was frozen and woken too late."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.syspath_prepend(Path(__file__).parent / "programs")
        case = case_of(
            "good:app", "long", {"topic": "grain"}, answers={"publish": "accept"}, signals={"go": 1}, limit="60s"
        )
        nurseries = Nurseries(1, Ending())
        try:
            done = run(case, read("freeze-before:3"), Path(folder), "t-1", nurseries)
        finally:
            nurseries.close()
    assert done.violations == []
    assert done.struck == 1
    return done.reading


def last(reading, **changes):
    """The reading with its last snapshot changed."""
    return reading._replace(snapshots=[*reading.snapshots[:-1], reading.end._replace(**changes)])


def kept(reading, **changes):
    """The reading with what is kept of the task changed at the end."""
    return last(reading, tasks={**reading.end.tasks, "t-1": reading.end.tasks["t-1"]._replace(**changes)})


def without(reading, cause):
    return kept(reading, history=[event for event in reading.end.tasks["t-1"].history if event.kind is not cause])


def lines(reading, edit):
    """The reading with lines of the trace edited; None takes one out."""
    edited = [Placed(at, new) for at, line in reading.lines if (new := edit(line)) is not None]
    return reading._replace(lines=edited)


def acked(verb, **changes):
    def edit(line):
        if not isinstance(line, Committed):
            return line
        return change(line, acks=[change(ack, **changes) if ack.verb == verb else ack for ack in line.acks])

    return lambda reading: lines(reading, edit)


def sights(saw, name, again=False, **changes):
    """Change what was seen of an effect, or see it once more with the change."""

    def alter(reading):
        found = []
        for at, line in reading.lines:
            hit = isinstance(line, Seen) and line.sight.what is saw and line.sight.name == name
            if not hit or again:
                found.append(Placed(at, line))
            if hit:
                found.append(Placed(at, change(line, sight=change(line.sight, **changes))))
        return reading._replace(lines=found)

    return alter


def appended(*new):
    return lambda reading: reading._replace(lines=[*reading.lines, *(Placed(1 << 40, line) for line in new)])


def late(reading):
    """A save under the first token, sent after everything else."""
    token = next(event.token for event in reading.end.tasks["t-1"].history if event.kind is Cause.CLAIMED)
    ack = Ack("save", "t-1", token, "pages", n=1)
    return appended(Committed(99, 1, "save", "pages", 1 << 41, [ack]))(reading)


def stolen(reading):
    """A token of the run, granted to another process as well."""
    token = next(line.granted[0].token for _, line in reading.commits() if line.granted)
    return appended(Committed(99, 1, "claim", "", 0, [], [Granted("t-1", token)]))(reading)


def opaque(reading):
    """The effect with a key, had it been declared as one that must not be repeated."""
    contract = Contract(kind=ContractKind.OPAQUE)
    once = sights(Saw.CALLED, "order", contract=contract)(reading)
    return sights(Saw.CALLED, "order", again=True, contract=contract)(once)


def unseen(reading):
    def edit(line):
        return None if isinstance(line, Committed) and line.verb == "start_effect" else line

    return lines(reading, edit)


BROKEN = {
    "completed twice": ("one_completion", lambda one: kept(one, history=one.end.tasks["t-1"].history * 2)),
    "not done": ("one_completion", lambda one: kept(one, task=change(one.end.tasks["t-1"].task, state=State.READY))),
    "another result": ("one_completion", lambda one: kept(one, task=change(one.end.tasks["t-1"].task, result=1))),
    "tokens fall": ("tokens_grow", lambda one: kept(one, history=one.end.tasks["t-1"].history[::-1])),
    "a token for two": ("tokens_grow", stolen),
    "no claim": ("nothing_after_its_end", lambda one: without(one, Cause.CLAIMED)),
    "no lapse": ("nothing_after_its_end", lambda one: without(one, Cause.LAPSED)),
    "accepted late": ("late_writes_refused", late),
    "a step lost": ("steps_stand", lambda one: kept(one, steps=[])),
    "a step changed": (
        "steps_stand", lambda one: kept(one, steps=[change(step, value="?") for step in one.end.tasks["t-1"].steps]),
    ),
    "a step not kept": ("steps_stand", acked("keep_step", slot="#9")),
    "a step acknowledged otherwise": ("steps_stand", acked("keep_step", digest="?")),
    "a checkpoint lost": ("checkpoints_monotone", lambda one: kept(one, checkpoints=[])),
    "a version not kept": ("checkpoints_monotone", acked("save", n=9)),
    "a version acknowledged otherwise": ("checkpoints_monotone", acked("save", digest="?")),
    "a checkpoint written over": (
        "checkpoints_monotone",
        lambda one: kept(one, checkpoints=[
            change(item, token=item.token - item.version) for item in one.end.tasks["t-1"].checkpoints
        ]),
    ),
    "an artifact lost": ("artifacts_whole", lambda one: kept(one, artifacts=[])),
    "an artifact damaged": ("artifacts_whole", lambda one: one._replace(damaged=["page.txt of t-1: damaged"])),
    "a child lost": ("children_exist", lambda one: last(one, tasks={"t-1": one.end.tasks["t-1"]})),
    "changed after its end": (
        "finished_is_finished",
        lambda one: one._replace(snapshots=[*one.snapshots, kept(one, artifacts=[]).end]),
    ),
    "no intent": ("effects_within_contract", unseen),
    "called twice": ("effects_within_contract", opaque),
    "another key": ("effects_within_contract", sights(Saw.CALLED, "put", again=True, key="other")),
    "another payload": ("effects_within_contract", sights(Saw.CALLED, "put", again=True, payload="{}")),
    "another receipt": ("effects_within_contract", sights(Saw.ANSWERED, "order", again=True, receipt="1")),
    "too late for the key": (
        "effects_within_contract",
        sights(Saw.CALLED, "order", again=True, contract=Contract(kind=ContractKind.KEYED, retention_ms=0)),
    ),
    "no record": ("effects_within_contract", lambda one: last(one, effects={})),
    "not succeeded": (
        "effects_within_contract",
        lambda one: last(one, effects={
            name: change(effect, state=EffectState.UNKNOWN) for name, effect in one.end.effects.items()
        }),
    ),
    "not whole": ("store_is_whole", lambda one: one._replace(not_whole=["attempts: task t-1: 7"])),
    "an order unheeded": ("orders_heeded", sights(Saw.CALLED, "mail", again=True, what=Saw.UNHEEDED, effect="")),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_that_is_not_as_it_should_be_breaks_the_rule_about_it(name, reading):
    rule, broken = BROKEN[name]
    assert judge(reading) == []
    assert rule in {violation.rule for violation in judge(broken(reading))}


def test_each_rule_is_broken_by_something():
    assert {rule for rule, _ in BROKEN.values()} == {rule.__name__ for rule in RULES}


def test_a_call_after_the_receipt_was_kept_is_found(reading):
    (line,) = [one for _, one in reading.lines if isinstance(one, Seen) and one.sight.what is Saw.CALLED
               and one.sight.name == "put"]  # fmt: skip
    found = judge(appended(line)(reading))
    assert [one.text for one in found] == ["effect 'put' was called again (try 1) after its receipt was kept"]


@pytest.mark.parametrize(("fault", "is_found"), [("freeze-at:16ms", False), ("freeze-after:7", True)])
def test_a_call_in_which_its_process_was_stopped_is_nobodys_mistake_but_one_behind_a_commit_is(
    reading, fault, is_found
):
    """Between the last look at the lease and the call there is no place for another look."""
    (line,) = [one for _, one in reading.lines if isinstance(one, Seen) and one.sight.what is Saw.CALLED
               and one.sight.name == "put"]  # fmt: skip
    struck = appended(Struck(pid=line.pid, fault=fault))(reading)
    found = [one.text for one in judge(appended(line)(struck)) if one.rule == "effects_within_contract"]
    assert found == (["effect 'put' was called again (try 1) after its receipt was kept"] if is_found else [])
