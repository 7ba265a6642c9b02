"""An explicit-state model of ownership: every state that small bounds allow, visited breadth first.

The model shares no code with the library, so that one mistake cannot hide in both. It has a store with a
clock and a register of leases, holders that may sleep for any time between two steps, a network that may
deliver a write at any later time, and one outside store with a fence. A verb is judged when it *arrives*:
a holder may try it at any moment, which covers every delay of the request. Holders have no clock at all
here, so nothing below rests on one.

The store's clock is not bounded: all that a judgement can depend on is how much is `left`, the lease's
`expires` minus the clock, and everything that is longer past counts as one. It may jump back, once.

`Rules()` is what the library promises. Each field of it that is switched away from its default is one known
mistake; a search under it must end in a counterexample, and the first one found is a shortest one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

READY, LEASED, DONE = "ready", "leased", "done"
OPEN, LAPSED, RELEASED, COMPLETED = "open", "lapsed", "released", "completed"
GRANTED, RAISED, WORKING, STOPPED = "granted", "raised", "working", "stopped"
ACCEPTED, REFUSED, REPEATED = "accepted", "refused", "repeated"
AT_EXPIRY, PAST_EXPIRY = 0, -1


@dataclass(frozen=True)
class Bounds:
    """How far the search goes."""

    holders: tuple[str, ...] = ("A", "B")
    tokens: int = 3
    ttl: int = 3
    in_flight: int = 1
    releases: bool = True


@dataclass(frozen=True)
class Rules:
    """The promised rules. Every field away from its default is one mistake."""

    raise_before_read: bool = True
    renew_at_equality: bool = False  # `expires >= now` where `>` is meant
    claim_after_equality: bool = False  # `expires < now` where `<=` is meant
    check_token: bool = True
    trust_holder_name: bool = False
    tokens_restart: bool = False  # a lapse starts the numbers again
    record_lapse: bool = True
    renew_may_shorten: bool = False
    check_fence: bool = True
    land_before_judging: bool = False
    look_then_take: bool = False  # a claim that judges in one step and writes in another


class Lease(NamedTuple):
    """One row of the register. `end` is what the store has written down; an ended lease has nothing left."""

    token: int
    holder: str
    left: int
    end: str


class Session(NamedTuple):
    """What the program that got one lease has done and heard. `flying` counts its writes still under way.

    It is `stopped` once it knows that the lease is over: it begins nothing more outside, but what flies
    still flies, and somebody who has its handle may still try every verb of the store.
    """

    phase: str
    flying: int


class State(NamedTuple):
    """Everything at one moment. `floor` is the largest token whose holder relies on what it read outside."""

    stepped_back: bool
    task: str
    leases: tuple[Lease, ...]
    sessions: tuple[Session, ...]
    fence: int
    floor: int
    looking: tuple[str, ...]


class Step(NamedTuple):
    """One possible move by the session `who` (for `look` and `claim`: by that holder; -1: by nobody).

    `landed` is the token under which data outside was changed, 0 for none.
    """

    action: str
    who: int
    verdict: str
    after: State
    landed: int = 0


START = State(stepped_back=False, task=READY, leases=(), sessions=(), fence=0, floor=0, looking=())


class Model:
    """All the moves that one set of rules allows from a state."""

    def __init__(self, rules: Rules, bounds: Bounds) -> None:
        self.rules = rules
        self.bounds = bounds

    def steps(self, state: State) -> Iterator[Step]:
        """Every move from here, those that the rules refuse included."""
        yield from self._clock(state)
        yield from self._claims(state)
        for who in range(len(state.sessions)):
            yield from self._verbs(state, who)
            yield from self._outside(state, who)

    # The judgements. The checks below ask the same questions, and compare the answers with the promises.

    def may_claim(self, state: State) -> bool:
        """Would the store grant the task to somebody else now?"""
        if state.task != LEASED:
            return state.task == READY
        left = state.leases[-1].left
        return left < AT_EXPIRY if self.rules.claim_after_equality else left <= AT_EXPIRY

    def may_act(self, state: State, who: int) -> bool:
        """Would the store take a verb from this session now?"""
        last = state.leases[-1]
        if state.task != LEASED or last.end != OPEN:
            return False
        in_time = last.left >= AT_EXPIRY if self.rules.renew_at_equality else last.left > AT_EXPIRY
        mine = state.leases[who]
        if not self.rules.check_token:
            return in_time
        if self.rules.trust_holder_name:
            return in_time and mine.holder == last.holder
        return in_time and who == len(state.leases) - 1

    # The moves.

    def _clock(self, state: State) -> Iterator[Step]:
        if state.task != LEASED:
            return
        left = state.leases[-1].left
        if left > PAST_EXPIRY:
            yield Step("tick", -1, ACCEPTED, _with_last(state, left=left - 1))
        if not state.stepped_back:
            back = _with_last(state, left=left + 1)
            yield Step("clock back", -1, ACCEPTED, back._replace(stepped_back=True))
        if left <= AT_EXPIRY:
            yield Step("expire", -1, ACCEPTED, _end_last(state, READY, LAPSED))

    def _claims(self, state: State) -> Iterator[Step]:
        room = len(state.leases) < self.bounds.tokens
        may = self.may_claim(state)
        last = state.leases[-1].holder if state.leases else None
        # Somebody else first: of two traces of one length, the one with two names is easier to read.
        for who, holder in sorted(enumerate(self.bounds.holders), key=lambda one: one[1] == last):
            if self.rules.look_then_take:
                if may and holder not in state.looking:
                    yield Step("look", who, ACCEPTED, state._replace(looking=(*state.looking, holder)))
                if room and holder in state.looking and state.task != DONE:
                    yield self._grant(state, who, holder)
            elif may and room:
                yield self._grant(state, who, holder)

    def _grant(self, state: State, who: int, holder: str) -> Step:
        if state.task == LEASED and state.leases[-1].left <= AT_EXPIRY:
            state = _end_last(state, READY, LAPSED)
        token = len(state.leases) + 1
        if self.rules.tokens_restart and state.leases and state.leases[-1].end == LAPSED:
            token = 1
        lease = Lease(token, holder, self.bounds.ttl, OPEN)
        looking = tuple(name for name in state.looking if name != holder)
        fresh = Session(GRANTED, flying=0)
        after = state._replace(
            task=LEASED, leases=(*state.leases, lease), sessions=(*state.sessions, fresh), looking=looking
        )
        return Step("claim", who, ACCEPTED, after)

    def _verbs(self, state: State, who: int) -> Iterator[Step]:
        """Renew, and the two verbs that end a lease. A stopped program tries too: its handle lives on."""
        closing = [("complete", DONE, COMPLETED)]
        if self.bounds.releases:
            closing.append(("release", READY, RELEASED))
        if self.may_act(state, who):
            yield Step("renew", who, ACCEPTED, self._renewed(state))
            for action, task, end in closing:
                yield Step(action, who, ACCEPTED, _stop(_end_last(state, task, end), who))
            return
        refused = self._refused(state, who)
        yield Step("renew", who, REFUSED, refused)
        for action, _, end in closing:
            if state.leases[who].end == end:
                yield Step(action, who, REPEATED, state)
            else:
                yield Step(action, who, REFUSED, refused)

    def _renewed(self, state: State) -> State:
        if self.rules.renew_may_shorten:
            return _with_last(state, left=self.bounds.ttl)
        return _with_last(state, left=max(self.bounds.ttl, state.leases[-1].left))

    def _refused(self, state: State, who: int) -> State:
        """Tell the session that its lease is lost, and write down a lapse if one was seen."""
        seen = state.task == LEASED and state.leases[-1].left <= AT_EXPIRY
        return _stop(_end_last(state, READY, LAPSED) if seen and self.rules.record_lapse else state, who)

    def _outside(self, state: State, who: int) -> Iterator[Step]:
        """The session's dealings with the outside store, which knows no leases, only tokens and its fence."""
        session, token = state.sessions[who], state.leases[who].token
        if session.flying:
            yield self._deliver(state, who)
        if session.phase == STOPPED:
            return
        if session.phase == WORKING:
            if session.flying < self.bounds.in_flight:
                sent = session._replace(flying=session.flying + 1)
                yield Step("send", who, ACCEPTED, _with_session(state, who, sent))
        elif session.phase == RAISED or not self.rules.raise_before_read:
            begun = _with_session(state, who, session._replace(phase=WORKING))
            yield Step("read", who, ACCEPTED, begun._replace(floor=max(state.floor, token)))
        elif token < state.fence:
            yield Step("raise", who, REFUSED, _stop(state, who))
        else:
            raised = _with_session(state, who, session._replace(phase=RAISED))
            yield Step("raise", who, ACCEPTED, raised._replace(fence=token))

    def _deliver(self, state: State, who: int) -> Step:
        session, token = state.sessions[who], state.leases[who].token
        arrived = _with_session(state, who, session._replace(flying=session.flying - 1))
        if token >= state.fence or not self.rules.check_fence:
            raised = arrived._replace(fence=max(token, state.fence))
            return Step("deliver", who, ACCEPTED, raised, landed=token)
        landed = token if self.rules.land_before_judging else 0
        return Step("deliver", who, REFUSED, _stop(arrived, who), landed)


def _with_last(state: State, left: int) -> State:
    return state._replace(leases=(*state.leases[:-1], state.leases[-1]._replace(left=left)))


def _end_last(state: State, task: str, end: str) -> State:
    """Write down that the last lease has ended, and how; from then on no clock can revive it."""
    ended = state.leases[-1]._replace(left=PAST_EXPIRY, end=end)
    return state._replace(task=task, leases=(*state.leases[:-1], ended))


def _with_session(state: State, who: int, session: Session) -> State:
    return state._replace(sessions=(*state.sessions[:who], session, *state.sessions[who + 1 :]))


def _stop(state: State, who: int) -> State:
    if state.sessions[who].phase == STOPPED:
        return state
    return _with_session(state, who, state.sessions[who]._replace(phase=STOPPED))


# What must be true, in the words of the promises and not in those of the moves above.


def wrong_state(model: Model, state: State) -> str | None:
    """Name the promise that this state breaks, if any."""
    live = [lease for lease in state.leases if lease.end == OPEN and lease.left > AT_EXPIRY]
    if len(live) > 1:
        return "one live holder: two leases of one task are live"
    if state.task == LEASED and state.leases[-1].end == OPEN:
        claim, renew = model.may_claim(state), model.may_act(state, len(state.leases) - 1)
        if claim and renew:
            return "strict expiry: a claim and a renewal would both succeed at this instant"
        if not claim and not renew:
            return "strict expiry: neither a claim nor a renewal would succeed at this instant"
        if renew != bool(live):
            return "strict expiry: a renewal must succeed before `expires`, and not at or after it"
    return None


def wrong_step(before: State, step: Step) -> str | None:
    """Name the promise that this move breaks, if any."""
    if step.action == "claim":
        return _wrong_grant(before, step.after)
    if step.verdict == REFUSED:
        return _wrong_refusal(before, step)
    if step.verdict == REPEATED:
        return None if step.after == before else "repeating is safe: a repeated verb changed something"
    if step.action in {"renew", "complete", "release"}:
        return _wrong_verb(before, step)
    if 0 < step.landed < before.floor:
        return "fence: an old write landed after a newer holder had raised the fence and read"
    if step.after.fence < before.fence:
        return "fence: it went back"
    return None


def _wrong_grant(before: State, after: State) -> str | None:
    if before.task == DONE:
        return "done is final: a finished task was granted"
    if any(lease.token >= after.leases[-1].token for lease in before.leases):
        return "tokens grow: a grant got a token that is not larger than all before it"
    return None


def _wrong_refusal(before: State, step: Step) -> str | None:
    after = step.after
    if step.landed or after.fence != before.fence:
        return "a refusal changes nothing: a refused write left something outside"
    if (before.task, before.leases) == (after.task, after.leases):
        return None
    last = before.leases[-1]
    lapse_only = (READY, (*before.leases[:-1], last._replace(left=PAST_EXPIRY, end=LAPSED)))
    if last.end == OPEN and last.left <= AT_EXPIRY and (after.task, after.leases) == lapse_only:
        return None
    return "a refusal changes nothing: a refused verb moved the task or a lease"


def _wrong_verb(before: State, step: Step) -> str | None:
    mine = before.leases[step.who]
    if step.who != len(before.leases) - 1 or mine.end != OPEN or mine.left <= AT_EXPIRY:
        return "only the owner acts: a verb was taken from a session whose lease is not the live one"
    if before.sessions[step.who].phase == STOPPED:
        return "lost is lost: a session that was told so was accepted again"
    if step.action == "renew" and step.after.leases[step.who].left < mine.left:
        return "a renewal never shortens"
    return None


# The search.


@dataclass
class Report:
    """What a search saw. `trace` is empty when every state within the bounds keeps every promise."""

    states: int = 0
    moves: int = 0
    broken: str | None = None
    trace: list[str] = field(default_factory=list)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __str__(self) -> str:
        if self.broken is None:
            return f"clean: {self.states:,} states, {self.moves:,} moves"
        lines = [f"{number:3}. {line}" for number, line in enumerate(self.trace, 1)]
        return "\n".join([f"broken after {len(self.trace)} moves: {self.broken}", *lines])


def search(rules: Rules, bounds: Bounds) -> Report:
    """Visit every state, nearest first, and stop at the first promise that is broken."""
    model, report = Model(rules, bounds), Report()
    reached: dict[State, tuple[State, Step] | None] = {START: None}
    waiting = deque([START])
    while waiting:
        state = waiting.popleft()
        report.states += 1
        for step in model.steps(state):
            report.moves += 1
            report.verdicts[step.action, step.verdict] += 1
            broken = wrong_step(state, step)
            is_new = step.after is not state and step.after not in reached
            if is_new:
                reached[step.after] = (state, step)
                broken = broken or wrong_state(model, step.after)
                waiting.append(step.after)
            if broken:
                report.broken = broken
                report.trace = [*_path(reached, bounds, state), _tell_step(bounds, state, step)]
                return report
    return report


def _path(reached: dict[State, tuple[State, Step] | None], bounds: Bounds, state: State) -> list[str]:
    """Walk back from a state to the start and tell the moves in the order in which they were made."""
    lines: list[str] = []
    while (origin := reached[state]) is not None:
        state, step = origin
        lines.append(_tell_step(bounds, state, step))
    return lines[::-1]


def _tell_step(bounds: Bounds, before: State, step: Step) -> str:
    if step.action == "claim":
        return f"claim by {bounds.holders[step.who]}: token {step.after.leases[-1].token}"
    if step.action == "look":
        return f"look by {bounds.holders[step.who]}: the task is free"
    if step.who < 0:
        left = step.after.leases[-1].left
        return f"{step.action}: " + (f"{left} left" if left >= AT_EXPIRY else "past expiry")
    lease = before.leases[step.who]
    return f"{step.action} by {lease.holder} with token {lease.token}: {step.verdict}"
