"""What the service learns of tasks and leases from requests and their answers; the clock is a number here."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import Raw

from relet.core.errors import LeaseLost, NotFound
from relet.core.model import Grant, Handle, LostReason, TakenOver, Task
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completed, Completion
from relet.core.rules.fail import Fail
from relet.core.rules.park import Park
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew, Renewed
from relet.core.rules.submit import Submit
from relet.core.work import WaitKind
from relet.server import passing
from relet.server.figures import CLAIM_LATENCY, RENEWAL_MARGIN, TAKEOVER
from relet.server.passing import Panel, Passing

MADE = datetime(2026, 1, 1, tzinfo=UTC)
SUBMIT = Submit(queue="q", kind="k", tasks=[])
CLAIM = Claim(holder="A", queues=["q"])


class Seen:
    """A service that hears of requests; each is answered at once."""

    def __init__(self):
        self.passing, self.panel = Passing(), Panel()

    def saw(self, ask, answer, now, asked_at=None, tenant="t"):
        self.passing.saw(self.panel, tenant, ask, answer, now if asked_at is None else asked_at, now)

    def submitted(self, now, id="a", *, created=True, due_in=None, tenant="t"):
        due_at = None if due_in is None else MADE + timedelta(seconds=due_in)
        rest = dict.fromkeys(Task.__struct_fields__) | {
            "id": id,
            "created": created,
            "created_at": MADE,
            "due_at": due_at,
        }
        self.saw(SUBMIT, [Task(**rest)], now, tenant=tenant)

    def granted(self, now, id="a", token=1, *, over=None, held_ms=0, queue="q", tenant="t", ask=CLAIM):
        rest = dict.fromkeys(Grant.__struct_fields__) | {
            "handle": Handle(id, token, "s"), "queue": queue, "ttl_ms": 60_000, "left_ms": 60_000 - held_ms,
            "held_ms": held_ms,
            "took_over": over and TakenOver(token=over, holder="A", reason=LostReason.EXPIRED),
        }  # fmt: skip
        grants = [Grant(**rest)]
        self.saw(ask, grants if ask is CLAIM else Completed(outcomes=[], grants=grants), now, tenant=tenant)

    def renewed(self, now, answer=None, token=1, *, came_at=None):
        answer = Renewed(left_ms=60_000) if answer is None else answer
        self.saw(Renew(handles=[Handle("a", token, "s")]), [answer], now, asked_at=came_at)

    def of(self, figure):
        """Its values by label: how many, and their sum."""
        spreads = self.panel.board._spread.get(figure.name, {})
        return {labels[0]: (sum(one.counts), round(one.total, 6)) for labels, one in spreads.items()}


@pytest.fixture
def seen():
    return Seen()


def lost(reason):
    return LeaseLost("gone", reason=reason)


def test_a_claim_is_as_late_as_its_task_was_ready_before_it(seen):
    seen.submitted(100.0)
    seen.granted(102.5)
    assert seen.of(CLAIM_LATENCY) == {"q": (1, 2.5)}


def test_a_task_that_is_due_later_waits_from_then_on(seen):
    seen.submitted(100.0, due_in=10)
    seen.granted(111.0)
    assert seen.of(CLAIM_LATENCY) == {"q": (1, 1.0)}


def test_a_task_that_was_there_already_or_came_by_another_way_tells_no_latency(seen):
    seen.submitted(100.0, created=False)
    seen.granted(102.5)
    seen.granted(102.5, "unheard-of", token=2)
    assert seen.of(CLAIM_LATENCY) == {}


def test_only_the_first_grant_tells_a_latency(seen):
    seen.submitted(100.0)
    seen.granted(101.0)
    seen.granted(109.0, token=2)
    assert seen.of(CLAIM_LATENCY) == {"q": (1, 1.0)}


def test_the_same_id_of_another_tenant_is_another_task(seen):
    seen.submitted(100.0, tenant="one")
    seen.granted(101.0, tenant="two")
    assert seen.of(CLAIM_LATENCY) == {}


def test_what_a_completion_claims_next_is_a_grant_like_any_other(seen):
    seen.submitted(100.0)
    seen.granted(103.0, ask=Complete(completions=[]))
    assert seen.of(CLAIM_LATENCY) == {"q": (1, 3.0)}
    seen.saw(Complete(completions=[]), Completed(outcomes=[], grants=NotFound("refused")), 104.0)


def test_a_renewal_in_time_finds_two_thirds_of_its_lease_left(seen):
    seen.granted(100.0)
    seen.renewed(120.0)
    assert seen.of(RENEWAL_MARGIN) == {"q": (1, 0.666667)}
    seen.renewed(175.0)
    assert seen.of(RENEWAL_MARGIN) == {"q": (2, 0.75)}, "measured from the renewal before it"


def test_the_time_in_which_the_store_answers_is_not_the_holders(seen):
    seen.granted(100.0)
    seen.renewed(125.0, came_at=120.0)
    assert seen.of(RENEWAL_MARGIN) == {"q": (1, 0.666667)}


def test_a_renewal_that_is_cut_short_by_the_longest_hold_leaves_the_ttl_as_it_was(seen):
    seen.granted(100.0)
    seen.renewed(120.0, Renewed(left_ms=6_000, capped=True))
    seen.renewed(123.0)
    assert seen.of(RENEWAL_MARGIN) == {"q": (2, 0.716667)}


@pytest.mark.parametrize("reason", [LostReason.EXPIRED, LostReason.SUPERSEDED])
def test_a_renewal_that_came_too_late_had_nothing_left(seen, reason):
    seen.granted(100.0)
    seen.renewed(170.0, lost(reason))
    assert seen.of(RENEWAL_MARGIN) == {"q": (1, 0.0)}


@pytest.mark.parametrize("reason", [LostReason.CLOSED, LostReason.CANCELLED, LostReason.CAPPED])
def test_a_renewal_that_was_refused_for_another_reason_was_not_late(seen, reason):
    seen.granted(100.0)
    seen.renewed(120.0, lost(reason))
    seen.renewed(120.0, NotFound("no such lease"))
    assert seen.of(RENEWAL_MARGIN) == {}


def test_a_lease_that_was_granted_before_this_process_began_counts_from_its_second_renewal(seen):
    seen.renewed(100.0)
    assert seen.of(RENEWAL_MARGIN) == {}
    seen.renewed(130.0)
    assert seen.of(RENEWAL_MARGIN) == {"other": (1, 0.5)}


def test_recovery_takes_from_the_last_heartbeat_to_the_next_grant(seen):
    seen.granted(100.0)
    seen.renewed(120.0)
    seen.granted(185.0, token=2, over=1)
    assert seen.of(TAKEOVER) == {"q": (1, 65.0)}
    seen.granted(186.0, token=2, over=1, held_ms=1_000)
    assert seen.of(TAKEOVER) == {"q": (1, 65.0)}, "a repeated answer is the same takeover"
    seen.granted(300.0, token=9, over=8)
    assert seen.of(TAKEOVER) == {"q": (1, 65.0)}, "of a lease that went by another way"


def test_queues_beyond_the_first_hundred_are_one(seen):
    for n in range(passing.QUEUES_MAX + 2):
        seen.submitted(0.0, f"t{n}")
        seen.granted(1.0, f"t{n}", n + 1, queue=f"q{n}")
    found = seen.of(CLAIM_LATENCY)
    assert (len(found), found["other"]) == (passing.QUEUES_MAX + 1, (2, 2.0))
    assert seen.panel.queue("q0") == "q0"


def test_what_is_remembered_is_bounded_and_leases_that_are_renewed_stay(seen, monkeypatch):
    monkeypatch.setattr(passing, "TASKS_KNOWN", 2)
    monkeypatch.setattr(passing, "LEASES_KNOWN", 2)
    for token in (1, 2, 1, 3):
        seen.submitted(0.0, f"t{token}")
        seen.renewed(1.0, token=token)
    assert ([*seen.passing._ready], [*seen.passing._beats]) == ([("t", "t2"), ("t", "t3")], [1, 3])


HANDLE = Handle("a", 1, "s")


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (Complete(completions=[Completion(handle=HANDLE, result=Raw(b"1"))]), Completed(outcomes=[None], grants=[])),
        (Fail(handle=HANDLE, error="no"), None),
        (Release(handle=HANDLE), None),
        (Park(handle=HANDLE, name="w", kind=WaitKind.SIGNAL, ask=Raw(b"1")), None),
    ],
)
def test_a_lease_that_its_holder_has_ended_is_forgotten_and_no_other(seen, ask, answer):
    """Else a service would remember every lease that it ever saw, up to its bound."""
    for token in (1, 2):
        seen.granted(100.0, token=token)
    seen.saw(ask, answer, 110.0)
    assert [*seen.passing._beats] == [2]


def test_a_lease_whose_end_was_refused_is_remembered_for_who_takes_it_over(seen):
    seen.granted(100.0)
    refused = Completed(outcomes=[lost(LostReason.EXPIRED)], grants=[])
    seen.saw(Complete(completions=[Completion(handle=HANDLE, result=Raw(b"1"))]), refused, 165.0)
    seen.granted(170.0, token=2, over=1)
    assert seen.of(TAKEOVER) == {"q": (1, 70.0)}


def test_a_lease_that_was_taken_over_is_known_by_its_queue_alone_and_not_for_ever(seen, monkeypatch):
    """Else each death of a holder would leave something behind."""
    monkeypatch.setattr(passing, "LOST_KNOWN", 2)
    seen.granted(100.0)
    for token in (2, 3, 4):
        seen.granted(100.0 + token, token=token, over=token - 1)
    assert ([*seen.passing._beats], seen.passing._lost) == ([4], {2: "q", 3: "q"})
    seen.renewed(110.0, lost(LostReason.SUPERSEDED), token=3)
    assert seen.of(RENEWAL_MARGIN) == {"q": (1, 0.0)}, "its heartbeat came too late"
    seen.renewed(110.0, lost(LostReason.SUPERSEDED), token=1)
    assert seen.of(RENEWAL_MARGIN) == {"q": (1, 0.0)}, "pushed out"


def test_a_renewal_that_is_told_of_after_the_takeover_begins_no_lease_anew(seen):
    seen.granted(100.0)
    seen.granted(170.0, token=2, over=1)
    seen.renewed(171.0, came_at=120.0)
    assert [*seen.passing._beats] == [2]
    seen.renewed(172.0, lost(LostReason.SUPERSEDED))
    assert seen.of(RENEWAL_MARGIN) == {"q": (1, 0.0)}, "in its own queue"


def test_of_a_batch_of_renewals_each_lease_counts(seen):
    handles = [Handle(f"t{n}", n, "s") for n in range(1_000)]
    seen.saw(Renew(handles=handles), [Renewed(left_ms=60_000)] * 1_000, 0.0)
    seen.saw(Renew(handles=handles), [Renewed(left_ms=60_000)] * 1_000, 20.0)
    assert seen.of(RENEWAL_MARGIN) == {"other": (1_000, 666.666667)}
