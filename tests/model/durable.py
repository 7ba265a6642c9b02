"""Waits, steps and effects for the machine, with arithmetic of its own about which try of an effect may be made."""

from dataclasses import dataclass, field

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import rule

import relet
from relet.core import border
from relet.core.rules.effect import Next
from relet.core.rules.end_effect import EndEffect
from relet.core.rules.start_effect import StartEffect
from relet.core.rules.step import KeepStep
from relet.core.work import Contract, ContractKind, EffectState, Outcome
from tests.model import witness
from tests.model.hands import Hand

TASK_IDS = st.sampled_from(["a", "b", "c", "d"])
CLIENTS = st.sampled_from([0, 1])
PICKS = st.integers(0, 11)
WAIT = "w"
PARK = st.fixed_dictionaries(
    {
        "name": st.just(WAIT),
        "kind": st.sampled_from(["approval", "approval", "signal"]),
        "ask": st.sampled_from([1, 2]),
        "timeout": st.sampled_from([None, 10]),
    }
)
# By name or, for all tasks, by key; and may a try be repeated whose outcome nobody knows.
EFFECTS = {
    "pay": (ContractKind.OPAQUE, None),
    "put": (ContractKind.NATURAL, None),
    "shared": (ContractKind.OPAQUE, "order-7"),
    "shared put": (ContractKind.NATURAL, "order-8"),
}
VERBS = {"decide", "signal", "keep_step", "start_effect", "end_effect", "reconcile"}


@dataclass
class Try:
    """One call of the function of an effect, as far as anybody has said what became of it."""

    hand: Hand
    attempt: int
    known: str | None = None


@dataclass
class Sink:
    """The other side of one effect: every try that was let go, in order."""

    tries: list[Try] = field(default_factory=list)
    receipts: set = field(default_factory=set)

    def may_go(self, contract):
        """Only when nobody has said that it happened, and what may have happened may be repeated."""
        if any(one.known == "applied" for one in self.tries):
            return False
        return contract is ContractKind.NATURAL or all(one.known == "not_applied" for one in self.tries)

    def clear(self):
        """A person says that none of it happened."""
        for one in self.tries:
            one.known = one.known or "not_applied"


class DurableWork:
    """Rules for a machine that has `clients`, `held`, `rows`, `sinks`, `tried` and `judge`."""

    @rule(who=CLIENTS, name=TASK_IDS, kind=st.sampled_from(["accept", "deny"]), by=st.sampled_from(["ann", "bob"]))
    def decide(self, who, name, kind, by):
        """Of those that wait the first, so that most answers are for somebody."""
        before = self.rows
        name = next((row["id"] for row in before.tasks.values() if row["state"] == "waiting"), name)
        answer = self.tried(
            "decide", lambda: self.clients[who].decide(name, WAIT, kind, by=by), check=witness.at_most_a_timeout
        )
        if isinstance(answer, relet.Refused):
            return
        task = before.task(name)
        wait = before.waits.get((task["wait_seq"],))
        if wait is not None and wait["name"] == WAIT:
            assert (wait["kind"], wait["decision"]) == ("approval", None)
        else:
            witness.unchanged(before, self.rows)  # the same said twice
        newest = self.held.newest(name)
        assert self.clients[who].lease(newest.handle).answer(WAIT).kind == kind

    @rule(who=CLIENTS, name=TASK_IDS, payload=st.integers(0, 2))
    def signal(self, who, name, payload):
        answer = self.tried(
            "signal", lambda: self.clients[who].signal(name, WAIT, payload), check=witness.at_most_a_timeout
        )
        if isinstance(answer, relet.Refused):
            assert self.state_of(name) in {None, "done", "failed", "cancelled"}

    @rule(who=CLIENTS, pick=PICKS, slot=st.sampled_from(["#1", "#2"]), value=st.integers(0, 1))
    def keep_step(self, who, pick, slot, value):
        hand = self.held.pick(pick, self.now_ms)
        raw = msgspec.Raw(str(value).encode())
        ask = KeepStep(handle=border.handle(hand.handle), name="s", slot=slot, value=raw)
        known = next((row for row in self.rows.steps.values() if self.is_of(row, hand) and row["slot"] == slot), None)
        kept = self.judge("keep_step", hand, lambda: self.clients[who].backend.call(ask))
        if not isinstance(kept, relet.Refused) and known is not None:
            assert bytes(kept.value).decode() == known["value"], "the first result stands"

    @rule(who=CLIENTS, pick=PICKS, name=st.sampled_from(sorted(EFFECTS)), payload=st.sampled_from([1, 1, 1, 2]))
    def start_effect(self, who, pick, name, payload):
        hand = self.held.pick(pick, self.now_ms)
        kind, key = EFFECTS[name]
        sink = self.sinks[key or (hand.task_id, name)]
        self.requests += 1
        ask = StartEffect(
            handle=border.handle(hand.handle), name=name, payload=msgspec.Raw(str(payload).encode()), timeout_ms=1,
            contract=Contract(kind=kind), key=key, call_id=f"c{self.requests}",
        )  # fmt: skip
        was_live = bool(sink.tries) and sink.tries[-1].hand.is_live(self.now_ms)
        answer = self.tried("start_effect", lambda: self.clients[who].backend.call(ask), hand.token)
        if isinstance(answer, relet.Conflict):
            if answer.code == "RELET-EFFECT-BUSY":
                assert was_live
            else:
                assert answer.code == "RELET-EFFECT-CONFLICT"
            return
        assert isinstance(answer, relet.Refused) == (not hand.may("start_effect", self.now_ms)), f"{hand}: {answer!r}"
        if isinstance(answer, relet.Refused):
            return
        match answer.next:
            case Next.GO:
                assert sink.may_go(kind), f"{name} was let go once more after {sink.tries}"
                sink.tries.append(Try(hand, answer.attempt))
            case Next.DONE:
                assert bytes(answer.receipt).decode() in sink.receipts
            case _:
                assert not sink.may_go(kind), f"{name} might have been tried after {sink.tries}"

    @rule(who=CLIENTS, pick=PICKS, outcome=st.sampled_from(list(Outcome)))
    def end_effect(self, who, pick, outcome):
        """Whoever made a try says what became of it, in time or late."""
        tries = [(sink, one) for sink in self.sinks.values() for one in sink.tries]
        if not tries:
            return
        sink, one = tries[-1 - pick % len(tries)]
        if one.known is not None:
            return  # nobody says two things of one try
        receipt = f'"r{one.hand.token}"'
        ask = EndEffect(
            handle=border.handle(one.hand.handle), effect_id=self.effect_of(sink)["id"], attempt=one.attempt,
            outcome=outcome, receipt=msgspec.Raw(receipt.encode()) if outcome is Outcome.APPLIED else msgspec.UNSET,
        )  # fmt: skip
        before = self.rows
        live = one.hand.is_live(self.now_ms)
        answer = self.tried(
            "end_effect", lambda: self.clients[who].backend.call(ask), one.hand.token, check=witness.but_for_evidence
        )
        assert isinstance(answer, relet.LeaseLost) != live
        if not live:
            witness.effects_unmoved_but_doubted(before, self.rows)
        if outcome is not Outcome.UNKNOWN:
            one.known = str(outcome)
        if outcome is Outcome.APPLIED:
            sink.receipts.add(receipt)

    @rule(who=CLIENTS, pick=PICKS, outcome=st.sampled_from([Outcome.APPLIED, Outcome.NOT_APPLIED]))
    def reconcile(self, who, pick, outcome):
        started = [sink for sink in self.sinks.values() if sink.tries]
        if not started:
            return
        sink = started[-1 - pick % len(started)]
        effect = self.effect_of(sink)
        last = sink.tries[-1]
        receipt = "person" if outcome is Outcome.APPLIED else None
        answer = self.tried(
            "reconcile",
            lambda: self.clients[who].reconcile(effect["id"], outcome, receipt, by="ann"),
            last.hand.token,
        )
        if isinstance(answer, relet.Refused):
            under_way = effect["state"] == EffectState.STARTED and last.hand.is_live(self.now_ms)
            assert under_way or effect["state"] in {EffectState.SUCCEEDED, EffectState.FAILED}
        elif outcome is Outcome.APPLIED:
            sink.receipts.add('"person"')
            last.known = last.known or "applied"
        else:
            sink.clear()

    def effect_of(self, sink):
        """The stored row of an effect, found by the token of its newest try."""
        name = next(name for name, other in self.sinks.items() if other is sink)
        for row in self.rows.effects.values():
            task = self.rows.tasks[row["task_seq"],]
            if row["key"] == name or (row["key"] is None and (task["id"], row["name"]) == name):
                return row
        raise AssertionError(f"{name} was let go and is not on record")

    def is_of(self, row, hand):
        return self.rows.tasks[row["task_seq"],]["id"] == hand.task_id
