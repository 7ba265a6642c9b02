"""Random sequences of workers, crashes and clocks over a real store; the witness looks after every step."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import relet
from relet.testing import Clock
from relet.testing.stores import open_store
from tests.folders import quick_folder
from tests.model import durable, witness
from tests.model.hands import EDGES_MS, TTL_MS, Hand, Hands

QUEUE = "q"
TASK_IDS = st.sampled_from(["a", "b", "c", "d"])
CLIENTS = st.sampled_from([0, 1])
PICKS = st.integers(0, 11)
"""Which grant, see `Hands.pick`: half of them are live, half are whichever, mostly stale."""
HOLDERS = st.sampled_from(["A", "B"])
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "max_attempts": st.sampled_from([1, 2, 9]),
        "max_losses": st.sampled_from([1, 2, 9]),
        "max_hold": st.sampled_from(["10s", "15s", "25s"]),
        "exclusive": st.just("key"),
        "delay": st.sampled_from(["1ms", "10s", "2h"]),
        "priority": st.sampled_from([-1, 1]),
    },
)
ENDS = {
    "complete": st.fixed_dictionaries({"result": st.sampled_from([None, 1, 2])}),
    "fail": st.fixed_dictionaries(
        {"error": st.sampled_from(["x", "y"]), "retry": st.booleans(), "delay": st.sampled_from([None, 0])}
    ),
    "release": st.fixed_dictionaries({"delay": st.sampled_from([0, 0.001])}),
    "park": durable.PARK,
}
VERBS = {
    "submit",
    "claim",
    "claim_task",
    "renew",
    "renew_many",
    "save",
    "cancel",
    "requeue",
    "repeat",
    "replay",
    *ENDS,
    *durable.VERBS,
}
ROUNDS_MAX = 6
LONG_ENOUGH = settings(
    max_examples=max(200, settings.default.max_examples), stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
SEEN = Counter()
"""How often each verb was accepted and refused, over all examples of a run."""


class Machine(durable.DurableWork, RuleBasedStateMachine):
    """Workers with stale handles, two clients that crash, a store clock that goes on, a wall clock that steps."""

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.folder = quick_folder()
        self.clients = [self.opened() for _ in range(2)]
        self.witness = self.look()
        self.began_ms = self.clock.mono_ms()
        self.held = Hands()
        self.options = {}
        self.sinks = defaultdict(durable.Sink)
        self.requests = 0
        self.rows = self.witness.read()

    def teardown(self):
        self.witness.close()
        found = self.verified()
        for client in self.clients:
            client.close()
        self.folder.cleanup()
        assert found == [], "whatever was done to it, all holds that must hold of a store"

    def verified(self):
        """What does not hold of the store as a whole."""
        return self.clients[0].verify().findings

    def opened(self):
        """One more client of the store."""
        return open_store(Path(self.folder.name), self.clock)

    def look(self):
        return witness.Witness(Path(self.folder.name) / "relet.db")

    @property
    def now_ms(self):
        return self.clock.mono_ms() - self.began_ms

    @property
    def store_ms(self):
        """As the store counts it, which begins when it is made."""
        return self.now_ms

    def tried(self, verb, call, token=None, *, check=None):
        """The answer of a call, or its refusal; after either the witness looks, after a refusal very closely."""
        before = self.rows
        try:
            answer = call()
        except relet.Refused as refusal:
            answer = refusal
        self.rows = after = self.witness.read()
        witness.check(before, after, self.store_ms)
        SEEN[verb, "refused" if isinstance(answer, relet.Refused) else "accepted"] += 1
        if isinstance(answer, relet.Refused):
            if check is not None:
                check(before, after, token)
            elif token is None:
                witness.unchanged(before, after)
            else:
                witness.unchanged_but_for_a_lapse(before, after, token)
        return answer

    def granted(self, leases, ask):
        """New hands for what a claim was granted."""
        now_ms = self.now_ms
        for lease in leases:
            options = self.options[lease.task_id]
            hold_ms = None if "max_hold" not in options else int(options["max_hold"][:-1]) * 1_000
            ttl_ms = round(lease.ttl * 1_000)
            hand = Hand(
                lease.task_id, lease.token, lease.handle, ttl_ms,
                until_ms=now_ms + min(ttl_ms, hold_ms or ttl_ms),
                cap_ms=None if hold_ms is None else now_ms + hold_ms, exclusive=options.get("exclusive"), ask=ask,
            )  # fmt: skip
            assert round(lease.expires_in * 1_000) == hand.until_ms - now_ms
            self.held.add(hand, now_ms)

    def judge(self, verb, hand, call):
        """A verb of a holder: taken if and only if the lease is its, to the millisecond."""
        may, lost = hand.may(verb, self.now_ms), hand.told_lost
        if verb == "complete" and self.rows.open_effects(hand.task_id):
            may = False
        answer = self.tried(verb, call, hand.token)
        accepted = not isinstance(answer, relet.Refused)
        assert accepted == may, f"{verb} under {hand} at {self.now_ms}: {answer!r}"
        assert not (accepted and lost), f"{verb} was taken after {hand.token} was told that it lost"
        if isinstance(answer, relet.LeaseLost) and not hand.is_live(self.now_ms):
            hand.told_lost = True
            assert self.rows.leases[hand.token,]["ended"], "it was told lost, and that was not written down"
        return answer

    # -- operators ---------------------------------------------------------------------------------------------------

    @initialize(option=OPTIONS, asks=st.booleans())
    def start(self, option, asks):
        for name, options in (("a", {}), ("b", option), ("c", {"exclusive": "key"})):
            self.submit(0, name, 0, options)
        self.claim(0, "A", 1, TTL_MS)
        self.claim_task(1, "B", "b", with_handle=False)
        if asks and (hand := self.held.newest("a")) is not None:
            self.finish(0, hand, "park", {"name": durable.WAIT, "kind": "approval", "ask": 1, "timeout": None})

    @rule(
        who=CLIENTS, name=TASK_IDS, content=st.sampled_from([0, 0, 0, 1]), options=OPTIONS,
        verb=st.sampled_from(["submit", "cancel", "requeue", "requeue", "sweep"]),
    )  # fmt: skip
    def operate(self, verb, who, name, content, options):
        match verb:
            case "submit":
                self.submit(who, name, content, options)
            case "cancel":
                self.cancel(who, name)
            case "requeue":
                self.tried("requeue", lambda: self.clients[who].requeue(name))
            case _:
                self.sweep(who)

    def submit(self, who, name, content, options):
        known = [row["id"] for row in self.rows.tasks.values()]
        before = self.rows
        answer = self.tried("submit", lambda: self.clients[who].submit(QUEUE, content, id=name, **options))
        if name not in known:
            assert answer.created
            self.options[name] = {**options, "content": content}
        elif isinstance(answer, relet.Conflict):
            assert self.options[name]["content"] != content
        else:
            assert not answer.created
            assert self.options[name]["content"] == content
            witness.unchanged(before, self.rows)

    def cancel(self, who, name):
        answer = self.tried("cancel", lambda: self.clients[who].cancel(name, "why"))
        hand = self.held.newest(name)
        if not isinstance(answer, relet.Refused) and hand is not None and hand.is_live(self.now_ms):
            hand.cancelling = True

    def sweep(self, who):
        closed = self.tried("sweep", self.clients[who].sweep)
        SEEN["sweep", "found" if closed else "idle"] += 1
        open_leases = [row["token"] for row in self.rows.leases.values() if row["ended"] is None]
        assert all(hand.is_live(self.now_ms) for hand in self.held.all if hand.token in open_leases)

    # -- claims ------------------------------------------------------------------------------------------------------

    @rule(who=CLIENTS, holder=HOLDERS, n=st.sampled_from([1, 1, 1, 3]), ttl_ms=st.sampled_from([TTL_MS, 500]))
    def claim(self, who, holder, n, ttl_ms):
        self.requests += 1
        ask = {"n": n, "holder": holder, "ttl": ttl_ms / 1_000, "request_id": f"r{self.requests}"}
        before = self.rows
        leases = self.tried("claim", lambda: self.clients[who].claim_many(QUEUE, **ask))
        self.none_unheard_of(before, leases)
        self.granted(leases, ask)

    @rule(who=CLIENTS, holder=HOLDERS, name=TASK_IDS, with_handle=st.booleans())
    def claim_task(self, who, holder, name, with_handle):
        last = self.held.newest(name)
        ask = {"task_id": name, "holder": holder, "ttl": TTL_MS / 1_000}
        if with_handle and last is not None:
            ask["handle"] = last.handle
        before, was = self.rows, self.state_of(name)
        answer = self.tried("claim_task", lambda: self.clients[who].claim(**ask), last and last.token)
        if last is not None and last.is_live(self.now_ms):
            assert answer is None, f"{name} was granted although {last.token} holds it"
        if was == "leased" and not last.is_live(self.now_ms) and "handle" in ask and not last.exclusive:
            assert answer is not None, "at its expiry a task can be claimed by who held it"
        if isinstance(answer, relet.Conflict):
            assert self.state_of(name) in {"done", "failed", "cancelled", "waiting"}
        leases = [] if answer is None or isinstance(answer, relet.Refused) else [answer]
        self.none_unheard_of(before, leases)
        self.granted(leases, {})

    def none_unheard_of(self, before, leases):
        """What was granted was told: nothing is held by nobody."""
        assert {(lease.token,) for lease in leases} == set(self.rows.leases) - set(before.leases)

    @rule(who=CLIENTS, pick=PICKS)
    def replay(self, who, pick):
        """The same request again: the same leases with the time left now, or their loss; never a new grant."""
        hand = self.held.pick(pick, self.now_ms)
        if not hand.ask:
            return
        same = [other for other in self.held.all if other.ask == hand.ask]
        live = [other for other in same if other.is_live(self.now_ms) and not other.cancelling]
        try:
            leases = self.clients[who].claim_many(QUEUE, **hand.ask)
        except relet.LeaseLost:
            leases = []
            SEEN["replay", "refused"] += 1
        else:
            SEEN["replay", "accepted"] += 1
        before, self.rows = self.rows, self.witness.read()
        witness.check(before, self.rows, self.store_ms)
        assert set(self.rows.leases) == set(before.leases), "a repeated claim was granted something new"
        assert [(lease.token, round(lease.expires_in * 1_000)) for lease in leases] == [
            (other.token, other.until_ms - self.now_ms) for other in live
        ]

    # -- verbs of a holder -------------------------------------------------------------------------------------------

    @rule(who=CLIENTS, pick=PICKS, value=st.sampled_from([1, 2]), ttl_ms=st.sampled_from([None, 0, 500, 2 * TTL_MS]))
    def keep_on(self, who, pick, value, ttl_ms):
        """Renew, with a ttl of its own perhaps; or save."""
        hand = self.held.pick(pick, self.now_ms)
        lease = self.clients[who].lease(hand.handle)
        if ttl_ms == 0:
            answer = self.judge("save", hand, lambda: lease.save(value))
            assert isinstance(answer, relet.Refused) or lease.load() == value
            return
        answer = self.judge("renew", hand, lambda: lease.renew(ttl=ttl_ms and ttl_ms / 1_000))
        if not isinstance(answer, relet.Refused):
            hand.renewed(self.now_ms, ttl_ms)
            assert round(answer * 1_000) == hand.until_ms - self.now_ms
        elif hand.is_live(self.now_ms) and not hand.cancelling:
            assert answer.reason == "capped"

    @rule(who=CLIENTS, picks=st.lists(PICKS, min_size=1, max_size=4))
    def renew_many(self, who, picks):
        client = self.clients[who]
        some = [self.held.pick(pick, self.now_ms) for pick in picks]
        leases = [client.lease(hand.handle) for hand in some]
        answers = self.tried("beat", lambda: client.renew_many(leases))
        for hand, answer in zip(some, answers, strict=True):
            accepted = not isinstance(answer, relet.Error)
            assert accepted == hand.may("renew", self.now_ms), f"{hand}: {answer!r}"
            assert not (accepted and hand.told_lost)
            SEEN["renew_many", "accepted" if accepted else "refused"] += 1
            if accepted:
                hand.renewed(self.now_ms)
            elif not hand.is_live(self.now_ms):
                hand.told_lost = True
                assert self.rows.leases[hand.token,]["ended"]

    @rule(who=CLIENTS, pick=PICKS, ending=st.sampled_from(sorted(ENDS)), data=st.data())
    def end(self, who, pick, ending, data):
        hand = self.held.pick(pick, self.now_ms)
        if hand.ended is not None and hand.ended[0] == ending:
            return  # the same verb again is the rule `repeat`
        self.finish(who, hand, ending, data.draw(ENDS[ending]))

    def finish(self, who, hand, ending, said):
        answer = self.judge(ending, hand, lambda: getattr(self.clients[who].lease(hand.handle), ending)(**said))
        if not isinstance(answer, relet.Refused):
            hand.ended = ending, said, answer

    @rule(who=CLIENTS, pick=PICKS, exactly=st.booleans(), data=st.data())
    def repeat(self, who, pick, exactly, data):
        """The verb that ended a lease: the same again has the same answer, other content is a conflict."""
        ended = [hand for hand in self.held.all if hand.ended is not None]
        if not ended:
            return
        hand = ended[-1 - pick % len(ended)]
        ending, said, first = hand.ended
        again = said if exactly else data.draw(ENDS[ending])
        before = self.rows
        answer = self.tried("repeat", lambda: getattr(self.clients[who].lease(hand.handle), ending)(**again))
        witness.unchanged(before, self.rows)
        if again == said:
            assert answer == first
        else:
            assert isinstance(answer, relet.Conflict), f"{again} after {said}: {answer!r}"

    # -- faults and time ---------------------------------------------------------------------------------------------

    @rule(who=CLIENTS)
    def crash(self, who):
        """A process ends and another opens the store; handles stay known, all memory of them is the store's."""
        self.clients[who].close()
        self.clients[who] = self.opened()

    @rule(ms=st.sampled_from(EDGES_MS))
    def tick(self, ms):
        self.clock.advance(f"{ms}ms")

    @rule(who=CLIENTS, pick=PICKS, late_ms=st.sampled_from([-1, 0, 0, 1]), then_sweep=st.booleans())
    def tick_to_an_expiry(self, who, pick, late_ms, then_sweep):
        if live := self.held.live(self.now_ms):
            hand = live[-1 - pick % len(live)]
            self.clock.advance(f"{max(0, hand.until_ms - self.now_ms + late_ms)}ms")
        if then_sweep:
            self.sweep(who)

    @rule(seconds=st.sampled_from([-7_200, -1, 1, 7_200, 86_400]))
    def step_the_wall(self, seconds):
        self.clock.step(seconds)

    def state_of(self, name):
        return next((row["state"] for row in self.rows.tasks.values() if row["id"] == name), None)


def explore(machine, quick, wanted, given_seed):
    """Run rounds of examples until each of the wanted has been seen; which ones a round draws is left to chance."""
    SEEN.clear()
    for number in range(ROUNDS_MAX):
        if given_seed is not None:
            seed(f"{given_seed}/{number}")(machine)  # under one seed each round would be the first one again
        run_state_machine_as_test(machine, settings=quick)
        if wanted <= set(SEEN):
            break
    missing = sorted(wanted - set(SEEN))
    assert not missing, f"the run was too short to mean anything: {missing} of {dict(sorted(SEEN.items()))}"


@pytest.mark.slow
def test_no_sequence_of_workers_crashes_and_clocks_breaks_a_promise(request):
    wanted = {(verb, how) for verb in VERBS for how in ("accepted", "refused")}
    # A claim from a queue has nothing to refuse; `claim_task` and `replay` have.
    wanted = wanted - {("claim", "refused")} | {("sweep", "found"), ("sweep", "idle")}
    explore(Machine, LONG_ENOUGH, wanted, request.config.option.hypothesis_seed)
