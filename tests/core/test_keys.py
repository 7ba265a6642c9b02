"""API keys in a store: made once under a name, known by their digest, ended by a date or by hand."""

import pytest

from relet.core.access import SCOPES_OF, Access, Role, Scope
from relet.core.errors import Conflict, Error, NotFound
from relet.core.model import date
from relet.core.rules.keys import FindKeys, ListKeys, MakeKey, NoteUses, RevokeKey

DAY_MS = 86_400_000


@pytest.fixture
def ask(scene):
    def ask(request):
        try:
            return scene.backend.operate(request)
        except Error as refused:
            return refused

    return ask


@pytest.fixture
def make(ask):
    def make(id="k1", name="ci", **options):
        options = {"tenant": "default", "role": Role.WORKER, "digest": f"digest of {id}"} | options
        return ask(MakeKey(id=id, name=name, **options))

    return make


def keys(scene):
    return scene.rows("SELECT * FROM api_keys")


def test_a_key_is_made_and_found_with_its_digest(scene, ask, make):
    made = make(queues=["a", "b"], scopes=[Scope.AUDIT], tenant="blue")
    assert made.created_at == date(scene.clock.wall_ms())
    assert (made.expires_at, made.revoked_at, made.used_at) == (None, None, None)
    assert made.scopes == [Scope.READ, Scope.SUBMIT, Scope.WORK, Scope.AUDIT]
    found = ask(FindKeys(ids=["k1"]))[0]
    assert (found.key, found.digest) == (made, "digest of k1")
    assert made.good
    assert made.access == Access(
        key_id="k1", name="ci", tenant="blue", role=Role.WORKER, queues=["a", "b"],
        scopes=SCOPES_OF[Role.WORKER] | {Scope.AUDIT},
    )  # fmt: skip


def test_nothing_is_found_where_there_is_no_key(ask):
    assert ask(FindKeys(ids=["k1"]))[0] is None


def test_the_same_request_again_is_answered_alike_and_another_key_of_the_name_is_refused(scene, make):
    made = make()
    before = keys(scene)
    assert make() == made
    for other in (make(id="k2"), make(digest="another")):
        assert type(other) is Conflict
        assert "relet token revoke ci" in str(other)
    assert keys(scene) == before


def test_a_name_in_a_refusal_can_be_pasted(make):
    make(name="-x y")
    assert "relet token revoke -- '-x y'" in str(make(id="k2", name="-x y"))


def test_a_key_expires_at_its_date_by_the_wall_clock(scene, ask, make):
    made = make(expires_ms=DAY_MS)
    assert made.expires_at == date(scene.clock.wall_ms() + DAY_MS)
    scene.pass_ms(DAY_MS - 1)
    assert ask(FindKeys(ids=["k1"]))[0].key.good
    scene.pass_ms(1)
    found = ask(FindKeys(ids=["k1"]))[0].key
    assert (found.expired, found.revoked, found.good) == (True, False, False)
    assert type(make(id="k2")) is Conflict  # an expired one keeps its name


@pytest.mark.parametrize("which", ["k1", "ci"])
def test_a_key_is_revoked_by_id_or_name_and_stays_so_from_then(scene, ask, make, which):
    make()
    scene.pass_ms(1_000)
    at = date(scene.clock.wall_ms())
    ended = ask(RevokeKey(which=which))
    assert (ended.revoked, ended.revoked_at, ended.good) == (True, at, False)
    scene.pass_ms(1_000)
    assert ask(RevokeKey(which=which)) == ended
    assert ask(FindKeys(ids=["k1"]))[0].key == ended


def test_a_name_is_free_once_its_key_is_revoked_and_then_means_the_new_one(scene, ask, make):
    make()
    ask(RevokeKey(which="ci"))
    scene.pass_ms(1)
    assert make(id="k0").good
    assert ask(RevokeKey(which="ci")).id == "k0"
    scene.pass_ms(1)
    assert ask(RevokeKey(which="ci")).id == "k0", "the newest of those that had the name"
    assert ask(FindKeys(ids=["k1"]))[0].key.revoked


def test_what_is_not_there_cannot_be_revoked(ask):
    refused = ask(RevokeKey(which="ci"))
    assert type(refused) is NotFound
    assert "relet token ls" in str(refused)


def test_keys_are_listed_in_pages_by_id_and_revoked_ones_when_asked_for(ask, make):
    for n in (3, 1, 2):
        make(id=f"k{n}", name=f"n{n}", expires_ms=1)
    ask(RevokeKey(which="n2"))

    def listed(**options):
        return [key.id for key in ask(ListKeys(**options))]

    assert listed() == ["k1", "k3"]
    assert listed(revoked=True) == ["k1", "k2", "k3"]
    assert listed(limit=1) == ["k1"]
    assert listed(limit=1, after="k1") == ["k3"]
    assert listed(after="k3") == []


def test_a_use_is_noted_by_the_stores_clock_and_never_moves_back(scene, ask, make):
    make()
    make(id="k2", name="other")
    at = date(scene.clock.wall_ms())
    assert ask(NoteUses(ids=["k1", "unknown", "k1"])) == 2
    assert ask(FindKeys(ids=["k1"]))[0].key.used_at == at
    assert ask(FindKeys(ids=["k2"]))[0].key.used_at is None
    scene.clock.step(-60)
    ask(NoteUses(ids=["k1"]))
    assert ask(FindKeys(ids=["k1"]))[0].key.used_at == at
    scene.clock.step(120)
    ask(NoteUses(ids=["k1"]))
    assert ask(FindKeys(ids=["k1"]))[0].key.used_at == date(scene.clock.wall_ms())
