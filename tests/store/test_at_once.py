"""What an engine answers by its own statement is what the pure rule says: answers, rows, events, refusals."""

import random

import msgspec
import pytest

from relet.core.errors import Error
from relet.core.rules.cancel import Cancel
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.inspect import Rejections
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew, Renewed
from relet.store import at_once
from relet.store.at_once import AT_ONCE
from tests.core.scene import Scene
from tests.core.talk import RAW
from tests.store.registers import spoilt

ROUNDS = 40
ALIKE = 60_000
EVENTS = "SELECT task_seq, kind, state, token, at_ms, detail FROM events ORDER BY seq"
LEASES = "SELECT * FROM leases ORDER BY token"
LATE = "SELECT * FROM late_beats ORDER BY token"


def stocked(seed):
    """A register of leases in every condition, and a request for many of them; the same for the same seed."""
    chance, scene = random.Random(seed), Scene()
    plain = chance.random() < 0.4
    handles = []
    for n in range(chance.choice([1, 3, 12, 30, 60])):
        odd = not plain and chance.random() < 0.25
        ttl_ms = chance.choice([200, 1_000, 90_000]) if odd else ALIKE
        cap_ms = chance.choice([200, 61_000, 70_000, 300_000]) if odd and chance.random() < 0.5 else None
        handles.append(scene.held(f"t{n}", ttl_ms=ttl_ms, max_hold_ms=cap_ms, max_losses=9).handle)
    scene.pass_ms(chance.choice([0, 150, 999, 1_000, 30_000]))
    for handle in handles if not plain else []:
        what = chance.random()
        if what < 0.06:
            scene.ask(Cancel(task_id=handle.task_id, reason="enough"))
        elif what < 0.12:
            scene.ask(Release(handle=handle))
        elif what < 0.16:
            scene.ask(Complete(completions=[Completion(handle=handle, result=RAW)]))
        elif what < 0.2:
            scene.claim(task_id=handle.task_id, holder="B")
    scene.pass_ms(chance.choice([0, 1, 800]))
    asked = handles if plain else [spoilt(chance, handle) for handle in handles if chance.random() < 0.9]
    if not plain:
        chance.shuffle(asked)
        asked += [chance.choice(handles) for _ in range(chance.randrange(3))]
    return scene, Renew(handles=asked, ttl_ms=chance.choice([None, None, 0, 500, 120_000]))


def outcome(scene, ask):
    """All that can be seen of a renewal: in the answer, in the store, in the feed of refusals."""
    answers = scene.ask(ask)
    told = [(type(one), str(one), one.code, one.detail) if isinstance(one, Error) else one for one in answers]
    feed = [msgspec.structs.replace(one, seq=0) for one in scene.ask(Rejections())]
    return told, scene.rows(LEASES), scene.rows(EVENTS), scene.rows(LATE), scene.state(), feed


def by_the_rule(monkeypatch, seed):
    with monkeypatch.context() as bare:
        bare.delitem(AT_ONCE, Renew)
        return outcome(*stocked(seed))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_renewals_by_one_statement_are_those_of_the_rule(monkeypatch, seed):
    assert outcome(*stocked(seed)) == by_the_rule(monkeypatch, seed)


def test_the_registers_differ_enough_to_tell(monkeypatch):
    seen, walked = set(), []
    real = at_once._extend_alike

    async def noted(*arguments):
        walked.append(await real(*arguments))
        return walked[-1]

    monkeypatch.setattr(at_once, "_extend_alike", noted)
    for seed in range(ROUNDS):
        for answer in outcome(*stocked(seed))[0]:
            seen.add((answer[0].__name__, answer[3].get("reason")) if isinstance(answer, tuple) else answer.capped)
    assert {False, True} <= seen, "whole beats, and beats cut short"
    reasons = {one[1] for one in seen if isinstance(one, tuple)}
    assert {"expired", "capped", "cancelled", "superseded", "released", "closed", None} <= reasons, reasons
    assert {None, ALIKE} <= set(walked), "by long runs, and one by one"


ODD = {
    "ended": lambda scene, handle: scene.ask(Release(handle=handle)),
    "cancelling": lambda scene, handle: scene.ask(Cancel(task_id=handle.task_id, reason="enough")),
    "of another ttl": lambda scene, handle: scene.rows(
        f"UPDATE leases SET ttl_ms = 90000 WHERE token = {handle.token}"
    ),
    "longer already": lambda scene, handle: scene.ask(Renew(handles=[handle], ttl_ms=300_000)),
    "at its cap": lambda scene, handle: scene.rows(
        f"UPDATE leases SET max_hold_ms = 61000 WHERE token = {handle.token}"
    ),
    "at its end": lambda scene, handle: scene.rows(
        f"UPDATE leases SET expires_ms = claimed_ms + 1000 WHERE token = {handle.token}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_one_of_a_long_run_that_is_not_like_the_others_is_judged_by_itself(monkeypatch, odd):
    def run():
        scene = Scene()
        handles = [scene.held(f"t{n}").handle for n in range(20)]
        scene.pass_ms(1_000)
        ODD[odd](scene, handles[7])
        return outcome(scene, Renew(handles=handles))

    at_once_ = run()
    with monkeypatch.context() as bare:
        bare.delitem(AT_ONCE, Renew)
        assert at_once_ == run()
    assert at_once_[0][7] != Renewed(left_ms=ALIKE), "it is not like the others"
    assert at_once_[0].count(Renewed(left_ms=ALIKE)) == 19


def test_long_runs_with_gaps_between_them_leave_the_gaps_alone():
    scene = Scene()
    handles = [scene.held(f"t{n}").handle for n in range(40)]
    asked = [*handles[:15], *handles[20:]]
    scene.pass_ms(1_000)
    before = dict(scene.rows("SELECT token, expires_ms FROM leases"))
    assert scene.ask(Renew(handles=asked)) == [Renewed(left_ms=ALIKE)] * len(asked)
    after = dict(scene.rows("SELECT token, expires_ms FROM leases"))
    assert {token for token in after if after[token] != before[token]} == {handle.token for handle in asked}


def test_a_lease_of_another_tenant_within_a_run_is_not_renewed_with_it():
    scene = Scene()
    handles = [scene.held(f"t{n}").handle for n in range(20)]
    scene.rows(f"UPDATE leases SET tenant = 'other' WHERE token = {handles[7].token}")
    scene.pass_ms(1_000)
    answers = scene.ask(Renew(handles=handles))
    assert [handle.token for handle, one in zip(handles, answers, strict=True) if isinstance(one, Error)] == [
        handles[7].token
    ]
    moved = scene.rows("SELECT token FROM leases WHERE beat_ms > claimed_ms")
    assert len(moved) == len(handles) - 1
