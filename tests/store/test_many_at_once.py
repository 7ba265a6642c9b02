"""Many claims and completions that an engine answers together are what the rule says: answers, rows, refusals."""

import random

import msgspec
import pytest

from relet.core.errors import Error
from relet.core.rules.cancel import Cancel
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.fail import Fail
from relet.core.rules.finish import Ended
from relet.core.rules.grant import Knobs
from relet.core.rules.inspect import Rejections
from relet.core.rules.release import Release
from relet.core.rules.set_queue import SetQueue
from relet.store import claim_at_once, complete_at_once
from relet.store.at_once import AT_ONCE
from tests.core.scene import Scene
from tests.core.talk import RAW
from tests.store.registers import spoilt

ROUNDS = 60
RESULTS = [RAW, msgspec.Raw(b'"' + b"long" * 20 + b'"'), msgspec.Raw(b'{"a":[1,"\xc3\xa4"]}')]


def stocked(seed):
    """A register with tasks and leases in every condition, and requests for many; the same for the same seed."""
    chance, scene = random.Random(seed), Scene()
    plain = chance.random() < 0.4
    for n in range(chance.choice([5, 30, 150])):
        scene.submit(
            f"w{n}", queue=chance.choice("qr"), kind=chance.choice("kl"), **({} if plain else odd(chance, scene))
        )
    ttls_ms = [1_000, 90_000] if not plain and chance.random() < 0.3 else [60_000]
    held = range(chance.choice([1, 3, 4, 12, 40]))
    handles = [scene.held(f"t{n}", ttl_ms=chance.choice(ttls_ms)).handle for n in held]
    scene.pass_ms(chance.choice([0, 150, 999]))
    if not plain:
        for handle in handles:
            happens(chance, scene, handle)
        for name in "qr":
            if chance.random() < 0.2:
                scene.ask(SetQueue(name=name, **chance.choice([
                    {"paused": True}, {"concurrency": 5}, {"rate": 7, "rate_ms": 1_000}, {"share_concurrency": 2},
                    {"ttl_ms": 7_000}, {"max_attempts": 9}, {"max_hold_ms": 500, "max_losses": 1},
                ])))  # fmt: skip
    scene.pass_ms(chance.choice([0, 1, 800]))
    asked = handles if plain else [spoilt(chance, handle, 0.98) for handle in handles if chance.random() < 0.9]
    asked = [handle for handle in asked if handle.token < 1 << 63]  # the border lets no larger one in
    chance.shuffle(asked)
    if not plain and chance.random() < 0.3:
        asked = [*asked, chance.choice(handles)]
    items = [Completion(handle=handle, result=chance.choice(RESULTS)) for handle in asked]
    following = claim(chance) if chance.random() < 0.8 else None
    return scene, [Complete(completions=items, next=following), claim(chance), *([] if plain else [claim(chance)])]


def odd(chance, scene):
    """Now and then what a claim must look at, besides the task itself."""
    if chance.random() < 0.85:
        return {}
    wall_ms = scene.clock.wall_ms()
    return chance.choice([
        {"exclusive": chance.choice("xy")}, {"exclusive": chance.choice("xy")}, {"priority": chance.choice([-3, 7])},
        {"delay_ms": chance.choice([100, 5_000, 9_000])}, {"at_wall_ms": wall_ms + 5_000}, {"ttl_ms": 5_000},
        {"deadline_wall_ms": wall_ms + chance.choice([500, 90_000])}, {"max_hold_ms": 300, "max_attempts": 1},
        {"labels": {"a": "b"}}, {"share": chance.choice("st")} if chance.random() < 0.05 else {"timeout_ms": 99},
    ])  # fmt: skip


def happens(chance, scene, handle):
    """Now and then: what keeps a lease from being ended plainly, or has its task claimed again."""
    what = chance.random()
    if what < 0.02:
        scene.ask(Cancel(task_id=handle.task_id, reason="enough"))
    elif what < 0.12:
        scene.ask(Release(handle=handle))
    elif what < 0.14:
        scene.ask(Complete(completions=[Completion(handle=handle, result=RAW)]))
    elif what < 0.2:
        scene.ask(Fail(handle=handle, error="no", delay_ms=0))
    elif what < 0.21:
        scene.rows(f"UPDATE tasks SET unsettled = 1 WHERE id = '{handle.task_id}'")
    elif what < 0.22:
        scene.rows(f"UPDATE leases SET call_id = 'lock~c' WHERE token = {handle.token}")
    elif what < 0.25:
        scene.rows(f"UPDATE leases SET exclusive = 'x{handle.token}' WHERE token = {handle.token}")


def claim(chance):
    """For many, of one queue or two, in one of the ways in which it is asked."""
    return Claim(
        holder="B", n=chance.choice([1, 2, 7, 40, 90]), queues=chance.choice([["q"], ["q", "r"], ["none", "r"]]),
        kinds=chance.choice([None, ["k"], ["k", "l"]]), ttl_ms=chance.choice([None, 1_500]),
        handlers=chance.choice([{}, {"k": Knobs(backoff_base_ms=5, timeout_ms=77), "l": Knobs()}]),
        request_id=chance.choice([None, None, None, "again"]), call_id="call",
    )  # fmt: skip


def told(answer):
    """An answer without the secrets, which no two stores share."""
    if isinstance(answer, list):
        return [told(one) for one in answer]
    if isinstance(answer, Error):
        return type(answer), str(answer), answer.code, answer.detail
    if isinstance(answer, Ended):
        return answer
    handle = msgspec.structs.replace(answer.handle, secret="")
    return msgspec.structs.replace(answer, handle=handle)


def outcome(scene, asks):
    """All that can be seen of them: in the answers, in the store, in the feed of refusals."""
    answers = []
    for ask in asks:
        answer = scene.ask(ask)
        if isinstance(ask, Complete) and not isinstance(answer, Error):
            answers.append((told(answer.outcomes), told(answer.grants)))
        else:
            answers.append(told(answer))
    feed = [msgspec.structs.replace(one, seq=0) for one in scene.ask(Rejections())]
    return answers, feed, whole(scene)


def whole(scene):
    """Every row of every table but the one that says which store it is."""
    tables = [name for (name,) in scene.rows("SELECT name FROM sqlite_schema WHERE type = 'table'") if name != "meta"]
    rows = {name: scene.rows(f"SELECT * FROM {name}") for name in tables if not name.startswith("sqlite")}
    return rows | {"meta": scene.rows("SELECT epoch, n, mark, lapse_count FROM meta")}


def by_the_rule(monkeypatch, seed):
    with monkeypatch.context() as bare:
        bare.delitem(AT_ONCE, Complete)
        bare.delitem(AT_ONCE, Claim)
        return outcome(*stocked(seed))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_many_together_are_answered_as_by_the_rule(monkeypatch, seed):
    at_once = outcome(*stocked(seed))
    ruled = by_the_rule(monkeypatch, seed)
    assert at_once[:2] == ruled[:2]
    for name, rows in ruled[2].items():
        assert at_once[2][name] == rows, name


def test_the_registers_differ_enough_to_tell(monkeypatch):
    ended, granted = [], {"plain": 0, "ruled": 0}
    end, plain, ruled = complete_at_once._end_all, claim_at_once._Plain.grant, claim_at_once.grant_to

    async def ending(*given):
        ended.append(await end(*given))
        return ended[-1]

    def granting(*given):
        granted["plain"] += 1
        return plain(*given)

    async def judging(*given):
        granted["ruled"] += 1
        return await ruled(*given)

    monkeypatch.setattr(complete_at_once, "_end_all", ending)
    monkeypatch.setattr(claim_at_once._Plain, "grant", granting)
    monkeypatch.setattr(claim_at_once, "grant_to", judging)
    for seed in range(ROUNDS):
        outcome(*stocked(seed))
    assert ended.count(True) > 10 < ended.count(False), "all together, and one by one"
    assert granted["plain"] > 500 and granted["ruled"] > 20, granted


ODD = {
    "ended": lambda scene, handle: scene.ask(Release(handle=handle)),
    "cancelling": lambda scene, handle: scene.ask(Cancel(task_id=handle.task_id, reason="enough")),
    "of a task with an open effect": lambda scene, handle: scene.rows(
        f"UPDATE tasks SET unsettled = 1 WHERE id = '{handle.task_id}'"
    ),
    "bound to another process": lambda scene, handle: scene.rows(
        f"UPDATE leases SET call_id = 'lock~c' WHERE token = {handle.token}"
    ),
    "at its end": lambda scene, handle: scene.rows(
        f"UPDATE leases SET expires_ms = claimed_ms + 1000 WHERE token = {handle.token}"
    ),
    "of another tenant": lambda scene, handle: scene.rows(
        f"UPDATE leases SET tenant = 'other' WHERE token = {handle.token}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_one_that_is_not_like_the_others_is_judged_by_the_rule(monkeypatch, odd):
    def run():
        scene = Scene()
        handles = [scene.held(f"t{n}").handle for n in range(20)]
        scene.pass_ms(1_000)
        ODD[odd](scene, handles[7])
        return outcome(scene, [Complete(completions=[Completion(handle=one, result=RAW) for one in handles])])

    at_once = run()
    with monkeypatch.context() as bare:
        bare.delitem(AT_ONCE, Complete)
        assert at_once == run()


@pytest.mark.parametrize("secret", ["0" * 32, "", "ü" * 32, "{}\n"])
def test_of_many_the_one_whose_secret_is_wrong_is_refused_alone(secret):
    scene = Scene()
    grants = [scene.held(f"t{n}") for n in range(20)]
    bad = msgspec.structs.replace(grants[7].handle, secret=secret.format(grants[7].handle.secret))
    grants[7] = msgspec.structs.replace(grants[7], handle=bad)
    outcomes = scene.complete(*grants).outcomes
    assert [n for n, one in enumerate(outcomes) if isinstance(one, Error)] == [7]
    assert (outcomes[7].code, scene.task("t7").state) == ("RELET-HANDLE", "leased")


KNOBS = ["ttl_ms", "timeout_ms", "max_hold_ms", "max_attempts", "max_losses"]


def test_each_of_many_tasks_is_held_on_its_own_terms():
    scene = Scene()
    for n, knob in enumerate(KNOBS, 3):
        scene.submit(f"one {knob}", **{knob: n})
        scene.submit(f"other {knob}", **{knob: 9 + n})
    scene.submit("none")
    assert len(scene.claim(n=2 * len(KNOBS) + 1)) == 2 * len(KNOBS) + 1
    for n, knob in enumerate(KNOBS, 3):
        held = scene.rows(f"SELECT t.id, l.{knob} FROM leases l JOIN tasks t ON t.token = l.token WHERE t.{knob}")
        assert held == [(f"one {knob}", n), (f"other {knob}", 9 + n)]


def test_secrets_of_leases_that_were_granted_together_prove_them():
    scene = Scene()
    scene.submit(*[f"t{n}" for n in range(70)])
    grants = scene.claim(n=70)
    assert len({grant.handle.secret for grant in grants}) == 70
    assert {outcome.state for outcome in scene.complete(*grants).outcomes} == {"done"}
