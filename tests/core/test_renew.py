"""renew: sets the end to a ttl from now; never adds, never shortens, never revives."""

import msgspec
import pytest

from relet.core.errors import LeaseLost, NotFound
from relet.core.rules.renew import Renew, Renewed
from relet.store.at_once import AT_ONCE
from tests.core.scene import TTL_MS, Scene


@pytest.fixture(params=["by the rule", "by the engine's own statement"])
def scene(request, monkeypatch):
    """Both ways to renew, one after the other."""
    if request.param == "by the rule":
        monkeypatch.delitem(AT_ONCE, Renew)
    return Scene()


def ends_at(scene):
    return scene.state()["leases"][0][1]


def test_a_renewal_sets_the_end_to_a_ttl_from_now(scene):
    grant = scene.held()
    scene.pass_ms(20_000)
    assert scene.renew(grant) == [Renewed(left_ms=TTL_MS)]
    scene.pass_ms(TTL_MS - 1)
    assert scene.renew(grant) == [Renewed(left_ms=TTL_MS)]
    scene.pass_ms(TTL_MS)
    assert isinstance(scene.renew(grant)[0], LeaseLost)


def test_renewals_in_a_row_do_not_add_up(scene):
    grant = scene.held()
    before = ends_at(scene)
    for _ in range(5):
        assert scene.renew(grant) == [Renewed(left_ms=TTL_MS)]
    assert ends_at(scene) == before


@pytest.mark.parametrize(("ttl_ms", "left_ms"), [(90_000, 90_000), (1_000, 50_000), (None, 60_000)])
def test_another_ttl_may_lengthen_this_beat_and_never_shortens_the_lease(scene, ttl_ms, left_ms):
    grant = scene.held()
    scene.pass_ms(10_000)
    assert scene.renew(grant, ttl_ms=ttl_ms) == [Renewed(left_ms=left_ms)]
    scene.pass_ms(1)
    assert scene.renew(grant)[0].left_ms == max(TTL_MS, left_ms - 1), "the next beat has the lease's own ttl again"


def test_a_renewal_touches_neither_the_task_nor_its_history(scene):
    grant = scene.held()
    before, events = scene.state()["tasks"], scene.events()
    scene.renew(grant)
    assert (scene.state()["tasks"], scene.events()) == (before, events)


def test_answers_are_aligned_and_one_refusal_does_not_touch_the_others(scene):
    short, long, gone = scene.held("a", ttl_ms=1_000), scene.held("b"), scene.held("c")
    forged = msgspec.structs.replace(gone, handle=msgspec.structs.replace(gone.handle, secret="x"))
    scene.complete(gone)
    scene.pass_ms(1_000)
    answers = scene.renew(short, long, forged, gone)
    assert [type(answer) for answer in answers] == [LeaseLost, Renewed, NotFound, LeaseLost]
    assert (answers[0].reason, answers[3].reason) == ("expired", "closed")
    assert answers[1].left_ms == TTL_MS


def test_the_same_lease_twice_is_renewed_once(scene):
    grant = scene.held()
    scene.pass_ms(1_000)
    assert scene.renew(grant, grant) == [Renewed(left_ms=TTL_MS)] * 2


def test_no_leases_no_answers(scene):
    assert scene.renew() == []


def test_max_hold_cuts_the_last_beat_short_and_refuses_the_next(scene):
    grant = scene.held(max_hold_ms=90_000)
    scene.pass_ms(20_000)
    assert scene.renew(grant) == [Renewed(left_ms=60_000)]
    scene.pass_ms(20_000)
    assert scene.renew(grant) == [Renewed(left_ms=50_000, capped=True)]
    scene.pass_ms(20_000)
    before = scene.state()
    (refused,) = scene.renew(grant)
    assert isinstance(refused, LeaseLost)
    assert (refused.reason, refused.detail["left_ms"]) == ("capped", 30_000)
    assert "30000 ms are left, save and finish" in str(refused)
    assert scene.state() == before
    assert scene.task().live, "it is held to its end"
    scene.pass_ms(29_999)
    assert scene.complete(grant).outcomes[0].state == "done"


def test_a_lease_that_began_capped_is_refused_at_its_first_beat(scene):
    grant = scene.held(max_hold_ms=1_000)
    (refused,) = scene.renew(grant)
    assert (refused.reason, refused.detail["left_ms"]) == ("capped", 1_000)


def test_max_hold_reached_to_the_millisecond_is_a_cap(scene):
    grant = scene.held(max_hold_ms=TTL_MS + 1)
    scene.pass_ms(1)
    assert scene.renew(grant) == [Renewed(left_ms=TTL_MS, capped=True)]


def late_beats(scene):
    return scene.rows("SELECT token, n, least_left_ms FROM late_beats ORDER BY token")


def test_a_renewal_with_less_than_half_of_the_ttl_left_is_noted_with_the_narrowest(scene):
    grant = scene.held()
    for passed_ms in (TTL_MS // 2, TTL_MS // 2 + 1, TTL_MS - 5, TTL_MS - 9):
        scene.pass_ms(passed_ms)
        scene.renew(grant)
    assert late_beats(scene) == [(grant.handle.token, 3, 5)]


def test_a_late_renewal_that_is_refused_is_not_noted(scene):
    lapsed, capped = scene.held("lapsed"), scene.held("capped", max_hold_ms=TTL_MS)
    scene.pass_ms(TTL_MS - 1)
    scene.renew(capped)
    scene.pass_ms(1)
    scene.renew(lapsed)
    assert late_beats(scene) == []
