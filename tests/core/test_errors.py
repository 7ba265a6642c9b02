"""Families, codes, and what may be repeated: callers decide by these."""

import pickle

import msgspec
import pytest

from relet.core import errors
from relet.core.errors import (
    FAMILIES,
    Conflict,
    Error,
    Forbidden,
    Invalid,
    LeaseLost,
    LeaseStopped,
    NotFound,
    OutcomeUnknown,
    Parked,
    Permanent,
    Refused,
    StaleToken,
    TaskCancelled,
    TaskFailed,
    Temporary,
    Unavailable,
    UpgradeRequired,
)
from relet.core.model import LostReason
from relet.core.problem import error_in, problem_of

CODES = {
    Error: "RELET-ERROR",
    Refused: "RELET-REFUSED",
    Invalid: "RELET-INVALID",
    NotFound: "RELET-NOT-FOUND",
    Forbidden: "RELET-FORBIDDEN",
    Conflict: "RELET-CONFLICT",
    UpgradeRequired: "RELET-UPGRADE",
    LeaseLost: "RELET-LEASE-LOST",
    StaleToken: "RELET-STALE-TOKEN",
    Unavailable: "RELET-UNAVAILABLE",
    OutcomeUnknown: "RELET-OUTCOME-UNKNOWN",
    TaskFailed: "RELET-TASK-FAILED",
    TaskCancelled: "RELET-TASK-CANCELLED",
}


def made(kind, **more):
    if issubclass(kind, LeaseLost):
        more = {"reason": "expired", "token": 1, "current_token": 2} | more
    return kind("what was, what is, what to do", **more)


def test_every_error_class_is_a_family_and_has_a_code_of_its_own():
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Error)}
    assert kinds == set(FAMILIES) == set(CODES)
    assert {kind: kind.code for kind in FAMILIES} == CODES


def test_families_stand_most_exact_first():
    for place, kind in enumerate(FAMILIES):
        assert not any(issubclass(later, kind) and later is not kind for later in FAMILIES[place:])


@pytest.mark.parametrize("kind", FAMILIES)
def test_only_what_certainly_did_not_happen_may_be_retried_freely(kind):
    assert made(kind).retryable is (kind is Unavailable)


def test_what_is_damaged_stays_so_however_often_it_is_asked_for():
    error = made(Unavailable, code="RELET-DAMAGED", table="task")
    across = error_in(msgspec.json.encode(problem_of(error)))
    assert [one.retryable for one in (error, pickle.loads(pickle.dumps(error)), across)] == [False] * 3


@pytest.mark.parametrize("kind", [Invalid, NotFound, Forbidden, Conflict, UpgradeRequired, LeaseLost, StaleToken])
def test_a_refusal_changed_nothing_and_is_no_outage(kind):
    assert issubclass(kind, Refused)
    assert not issubclass(kind, (Unavailable, OutcomeUnknown))


@pytest.mark.parametrize("kind", FAMILIES)
def test_an_error_keeps_its_message_its_code_and_its_facts_across_processes(kind):
    error = made(kind, code="RELET-OTHER", field="id", n=7)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == again.message == "what was, what is, what to do"
    assert again.code == "RELET-OTHER"
    assert again.detail == error.detail
    assert again.detail["field"] == "id"
    assert kind.code == CODES[kind], "a code given to one error is not the code of its class"


def test_a_lost_lease_says_why_and_names_both_tokens():
    lost = LeaseLost("gone", reason="superseded", token=4, current_token=9, late_ms=12)
    assert (lost.reason, lost.token, lost.current_token) == (LostReason.SUPERSEDED, 4, 9)
    assert lost.detail == {"reason": "superseded", "token": 4, "current_token": 9, "late_ms": 12}
    assert pickle.loads(pickle.dumps(lost)).reason is LostReason.SUPERSEDED


def test_a_reason_that_nobody_knows_is_a_bug():
    with pytest.raises(ValueError, match="bored"):
        LeaseLost("gone", reason="bored")


def test_verdicts_of_handlers_carry_their_code_and_delay():
    assert (str(Permanent("bad input", code="E1")), Permanent("x", code="E1").code) == ("bad input", "E1")
    again = Temporary("later", delay="5s", code="E2")
    assert (str(again), again.delay, again.code) == ("later", "5s", "E2")
    assert (Temporary().delay, Permanent().code) == (None, None)


def test_a_stop_is_not_swallowed_by_a_bare_except_exception():
    cause = made(LeaseLost)
    stopped = LeaseStopped(cause)
    assert not isinstance(stopped, Exception)
    assert stopped.cause is cause
    assert str(stopped) == str(cause)


def test_a_wait_is_not_swallowed_by_a_bare_except_exception():
    parked = Parked("t", "publish")
    assert not isinstance(parked, Exception)
    assert (parked.task_id, parked.name) == ("t", "publish")
    assert "task t is parked: it waits with 'publish'" in str(parked)
