"""What a key allows: every operation has a scope, every role its scopes, and a refusal says which key to ask for."""

import os
import re

import pytest

from relet.core.access import (
    CHANCE_BYTES,
    KEY,
    NEEDS,
    SCOPES_OF,
    Access,
    Role,
    Scope,
    digest_of,
    id_in,
    is_key,
    new_key,
)
from relet.core.catalog import BY_NAME
from relet.core.errors import Forbidden

MAY = {
    Role.VIEWER: {"read"},
    Role.SUBMITTER: {"read", "submit"},
    Role.WORKER: {"read", "submit", "work"},
    Role.APPROVER: {"read", "approve"},
    Role.OPERATOR: {"read", "submit", "approve", "operate"},
    Role.ADMIN: {"read", "submit", "work", "approve", "operate", "audit", "admin"},
}
CHANCE = bytes(range(CHANCE_BYTES))
TEXT = new_key(CHANCE)[1]


def access(role=Role.WORKER, *scopes, queues=None):
    return Access(
        key_id="0123456789ab", name="ci", tenant="default", role=role, scopes=SCOPES_OF[role] | set(scopes),
        queues=queues,
    )  # fmt: skip


def test_every_operation_needs_a_scope_and_nothing_else_has_one():
    assert NEEDS.keys() == BY_NAME.keys()


def test_every_scope_that_is_needed_is_of_a_role():
    assert set(Scope) == frozenset().union(*SCOPES_OF.values())


@pytest.mark.parametrize("role", Role)
def test_a_role_has_its_scopes_and_no_other(role):
    assert {str(scope) for scope in SCOPES_OF[role]} == MAY[role]


@pytest.mark.parametrize("name", NEEDS)
@pytest.mark.parametrize("role", Role)
def test_a_role_may_what_its_scopes_let_it(role, name):
    refused = access(role).refusal(name, [])
    assert (refused is None) == (NEEDS[name] in SCOPES_OF[role])


@pytest.mark.parametrize(
    ("operation", "least"),
    [
        ("task", "viewer"),
        ("submit", "submitter"),
        ("claim", "worker"),
        ("decide", "approver"),
        ("cancel", "operator"),
    ],
)
def test_what_needs_which_role(operation, least):
    may = [str(role) for role in Role if access(role).refusal(operation, []) is None]
    assert may[0] == least


def test_no_answer_that_is_for_all_tenants_is_a_readers():
    assert access(Role.VIEWER).refusal("referenced", []) is not None


def test_a_scope_given_by_name_is_had_beside_those_of_the_role():
    assert access().lacks(Scope.AUDIT, "the audit log") is not None
    assert access(Role.WORKER, Scope.AUDIT).lacks(Scope.AUDIT, "the audit log") is None


def test_a_refusal_names_the_scope_the_role_and_a_key_that_has_it():
    refused = access().refusal("cancel", ["q"])
    assert type(refused) is Forbidden
    assert str(refused) == (
        "the key ci (0123456789ab) has the role worker, and cancel needs the scope operate. Nothing was done. Ask "
        "for a key that has it → relet token create NAME --role operator"
    )
    assert refused.detail == {
        "operation": "cancel", "key": "0123456789ab", "role": "worker", "scope": "operate",
    }  # fmt: skip


def test_a_key_for_some_queues_is_for_no_other():
    bound = access(queues=["a", "b"])
    assert bound.refusal("claim", ["b", "a"]) is None
    assert (bound.has("a"), bound.has("c"), access().has("c")) == (True, False, True)
    assert access().refusal("claim", ["c"]) is None
    refused = bound.refusal("claim", ["a", "c d", "e"])
    assert "is for the queues a, b, and not for c d" in str(refused)
    assert "relet token create NAME --role worker --queue 'c d'" in str(refused)
    assert refused.detail["queue"] == "c d"


def test_a_key_for_no_queue_at_all_is_for_none():
    assert access(queues=[]).refusal("submit", ["q"]) is not None


def test_an_operation_without_a_scope_is_allowed_to_nobody():
    with pytest.raises(KeyError):
        access(Role.ADMIN).refusal("drop_everything", [])


def test_a_key_is_made_of_the_bytes_it_is_given_and_of_all_of_them():
    key_id, text = new_key(CHANCE)
    assert KEY.fullmatch(text)[1] == id_in(text) == key_id
    assert new_key(CHANCE) == (key_id, text)
    for n in range(CHANCE_BYTES):
        other = new_key(CHANCE[:n] + b"\xff" + CHANCE[n + 1 :])
        assert (other[0] != key_id) == (n < 8), n
        assert other[1] != text, n
        assert (other[1].rpartition(other[0])[2] != text.rpartition(key_id)[2]) == (n >= 8), n


def test_keys_of_any_bytes_have_the_form():
    for chance in (b"\x00" * CHANCE_BYTES, b"\xff" * CHANCE_BYTES, *(os.urandom(CHANCE_BYTES) for _ in range(100))):
        assert re.fullmatch(r"lt_[0-9a-z]{12}_[0-9A-Za-z_-]{43}", new_key(chance)[1])
    with pytest.raises(AssertionError):
        new_key(b"few")


@pytest.mark.parametrize(
    "shown",
    [TEXT[:-1], f"{TEXT}x", f"{TEXT}\n", f" {TEXT}", TEXT.upper(), TEXT.replace("lt_", "lt-"), "", TEXT[3:],
     f"{TEXT[:-1]}é", f"{TEXT[:-1]}\udcff"],
)  # fmt: skip
def test_what_has_not_the_form_of_a_key_has_no_id_and_is_none(shown):
    assert id_in(shown) is None
    assert not is_key(shown, digest_of(TEXT))


def test_a_key_is_known_by_its_digest_and_nothing_is_where_there_is_none():
    other = new_key(CHANCE[::-1])[1]
    assert is_key(TEXT, digest_of(TEXT))
    assert not is_key(TEXT, digest_of(other))
    assert not is_key(TEXT, None)
    assert TEXT not in digest_of(TEXT)
