"""Errors cross HTTP as problem documents, and come back as they were; what is no problem of ours is none."""

import msgspec
import pytest

from relet.core import errors
from relet.core.problem import FAULT, NO_CREDENTIAL, STATUS_OF_CODE, STATUS_OF_FAMILY, error_in, problem_of
from relet.core.wire import encode

CASES = [
    errors.Invalid("ttl: is odd", field="ttl"), errors.NotFound("no task", task_id="t"), errors.Forbidden("no"),
    errors.Conflict("done", code="RELET-GONE", task_id="t"), errors.UpgradeRequired("newer"),
    errors.LeaseLost("gone", reason="expired", token=3, current_token=4, late_ms=5),
    errors.StaleToken("later", reason="superseded", token=3, current_token=4), errors.Unavailable("busy"),
    errors.OutcomeUnknown("who knows"), errors.Refused("long"), errors.Error("some"),
]  # fmt: skip


@pytest.mark.parametrize("error", CASES, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was(error):
    found = error_in(encode(problem_of(error)))
    assert type(found) is type(error)
    assert (str(found), found.code, found.retryable, found.detail) == (
        str(error), error.code, error.retryable, error.detail,
    )  # fmt: skip


def test_a_problem_says_what_it_is_to_who_knows_nothing_of_relet():
    told = problem_of(errors.LeaseLost("gone", reason="expired", token=3))
    assert (told.status, told.type, told.family) == (410, "urn:relet:RELET-LEASE-LOST", "LeaseLost")
    assert told.title == "The lease is not yours any more"
    assert told.detail == "gone"


def test_a_code_that_http_has_a_word_for_has_its_status():
    assert problem_of(errors.Forbidden("who", code=NO_CREDENTIAL)).status == 401
    assert problem_of(errors.Unavailable("disk", code="RELET-FULL")).status == 507


def test_every_family_has_a_status_of_its_own_kind():
    assert set(STATUS_OF_FAMILY) == set(errors.FAMILIES)
    ours = {code: status for code, status in STATUS_OF_CODE.items() if code != FAULT}
    assert all(400 <= status < 600 and status != 500 for status in (*STATUS_OF_FAMILY.values(), *ours.values()))


def test_a_family_that_is_not_known_yet_is_an_error_all_the_same():
    told = msgspec.structs.replace(problem_of(errors.Invalid("x", field="y")), family="Tomorrow")
    found = error_in(encode(told))
    assert type(found) is errors.Error
    assert found.detail == {"field": "y"}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>502</html>", b"{}", b'{"title": "Bad Gateway", "status": 502}',
        encode(msgspec.structs.replace(problem_of(errors.LeaseLost("g", reason="expired")), facts={})),
        encode(msgspec.structs.replace(
            problem_of(errors.LeaseLost("g", reason="expired")), facts={"reason": "of tomorrow"}
        )),
    ],
)  # fmt: skip
def test_what_is_no_problem_of_ours_is_none(body):
    assert error_in(body) is None
