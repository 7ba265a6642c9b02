"""What late words, strangers, two clocks and people may do to an effect, and what not."""

import pytest

from relet.core import limits
from relet.core.errors import Conflict
from relet.core.rules.effect import Next
from relet.core.rules.release import Release
from relet.core.work import EffectState, Outcome
from tests.core.durable import NATURAL, claimed, effect, end, keyed, reconcile, start
from tests.core.test_effects import DAY_MS, QUERYABLE, the_try, unknown
from tests.core.test_reconcile import APPLIED, NOT_APPLIED, started


@pytest.mark.parametrize("gone", [False, True], ids=["live", "released"])
def test_what_a_stranger_says_of_a_try_is_no_evidence(scene, gone):
    one, two = scene.held("one"), scene.held("two")
    tried = start(scene, one)
    end(scene, one, tried, Outcome.UNKNOWN)
    if gone:
        scene.ask(Release(handle=two.handle))
    for attempt in (1, 2, 99):
        refused = end(scene, two, tried, Outcome.APPLIED, "forged", attempt=attempt)
        assert refused.code == ("RELET-LEASE-LOST" if gone else "RELET-NO-TRY")
    assert effect(scene).evidence == []
    assert start(scene, one).next is Next.ASK


def test_a_start_that_is_repeated_has_its_whole_time_again(scene):
    grant = scene.held(ttl_ms=100_000)
    start(scene, grant, contract=QUERYABLE, call_id="c", timeout_ms=1_000)
    scene.pass_ms(5_000)
    assert start(scene, grant, contract=QUERYABLE, call_id="c", timeout_ms=1_000).next is Next.GO
    end(scene, grant, the_try(effect(scene)), Outcome.UNKNOWN)
    assert start(scene, grant, contract=QUERYABLE, timeout_ms=1_000).settles_in_ms >= 1_000


@pytest.mark.parametrize("hours", [-24, 24], ids=["back", "forward"])
def test_a_step_of_the_wall_clock_makes_nobody_forget_or_arrive_sooner(scene, hours):
    grant = scene.held(ttl_ms=DAY_MS)
    start(scene, grant, "asked", contract=QUERYABLE, timeout_ms=30_000)
    end(scene, grant, the_try(effect(scene)), Outcome.UNKNOWN)
    scene.clock.step(hours * 3_600)
    assert start(scene, grant, "asked", contract=QUERYABLE).settles_in_ms >= 30_000


def test_a_key_is_forgotten_by_the_clock_that_counted_more(scene):
    contract = keyed(DAY_MS)
    grant = scene.held(ttl_ms=DAY_MS)
    start(scene, grant, contract=contract)
    end(scene, grant, the_try(effect(scene)), Outcome.UNKNOWN)
    scene.clock.step(-DAY_MS / 1_000)
    scene.pass_ms(DAY_MS - 1)
    assert start(scene, grant, contract=contract).next is Next.ASK


def test_of_many_late_words_a_bounded_number_is_kept(scene):
    scene.submit("t", max_attempts=9_999, max_losses=9_999)
    said = []
    for _ in range(limits.EVIDENCE_KEPT + 2):
        grant = claimed(scene, task_id="t")
        said.append((grant, start(scene, grant, contract=NATURAL)))
        scene.ask(Release(handle=grant.handle))
    for n, (grant, tried) in enumerate(said):
        end(scene, grant, tried, Outcome.UNKNOWN, error=str(n))
    assert [one.attempt for one in effect(scene).evidence] == list(range(3, limits.EVIDENCE_KEPT + 3))


def test_a_receipt_that_was_left_out_is_added_by_a_person_and_by_no_second(scene):
    grant = unknown(scene)
    known = effect(scene).id
    reconcile(scene, known, APPLIED)
    assert effect(scene).receipt is None
    added = reconcile(scene, known, APPLIED, {"id": 7}, by="bob")
    assert (added.state, added.receipt, added.reconciled_by) == (EffectState.SUCCEEDED, {"id": 7}, "bob")
    assert isinstance(reconcile(scene, known, APPLIED, {"id": 8}), Conflict)
    assert isinstance(reconcile(scene, known, NOT_APPLIED), Conflict)
    assert effect(scene).receipt == {"id": 7}
    assert start(scene, grant).next is Next.DONE


def test_to_a_receipt_of_the_holders_own_nobody_adds(scene):
    grant, said = started(scene)
    end(scene, grant, said)
    before = scene.state()
    assert isinstance(reconcile(scene, effect(scene).id, APPLIED, {"id": 7}), Conflict)
    assert scene.state() == before
