"""Keys of the service: printed once, listed without what opens anything, ended by id or by name."""

import json
import re

import pytest

from relet.connect import operated_at
from relet.core.access import KEY, digest_of, is_key
from relet.core.rules.keys import FindKeys, NoteUses


def operate(request, url="sqlite:///relet.db"):
    with operated_at(url) as store:
        return store.operate(request)


@pytest.fixture
def create(relet):
    """The id of a new key, and the key."""

    def create(name="ci", role="worker", *args):
        done = relet("token", "create", name, "--role", role, *args)
        assert done.code == 0, done.err
        return KEY.fullmatch(done.out.strip())[1], done.out.strip()

    return create


def test_a_key_is_printed_alone_and_the_store_knows_it_by_its_digest(relet, folder):
    done = relet("token", "create", "ci", "--role", "worker")
    text = done.out.removesuffix("\n")
    key_id, secret = KEY.fullmatch(text).groups()
    assert "shown once" in done.err
    assert f"relet token revoke {key_id}" in done.err
    assert text not in done.err
    found = operate(FindKeys(ids=[key_id]))[0]
    assert is_key(text, found.digest)
    for file in folder.iterdir():
        assert secret.encode() not in file.read_bytes(), file


def test_two_keys_are_different(create):
    assert create("a")[1] != create("b")[1]


def test_all_that_can_be_said_of_a_key_is_kept(relet):
    done = relet(
        "token", "create", "ci", "--role", "approver", "--queue", "a", "--queue", "b", "--queue", "a",
        "--scope", "audit", "--expires", "90d", "--tenant", "blue", "--json",
    )  # fmt: skip
    made = done.json
    key = operate(FindKeys(ids=[made["id"]]))[0].key
    assert is_key(made["key"], digest_of(made["key"]))
    assert (key.name, key.role, key.tenant, key.queues) == ("ci", "approver", "blue", ["a", "b"])
    assert key.scopes == ["read", "approve", "audit"] == made["scopes"]
    assert (key.expires_at - key.created_at).days == 90
    assert "tenant blue, and expires at" in done.err


def test_a_key_that_nothing_ends_says_so(relet):
    assert "does not expire" in relet("token", "create", "ci", "--role", "viewer").err


def test_a_name_means_one_key_at_a_time(relet, create):
    create()
    again = relet("token", "create", "ci", "--role", "viewer")
    assert (again.code, again.out) == (11, "")
    assert "relet token revoke ci" in again.err
    relet("token", "revoke", "ci")
    assert relet("token", "create", "ci", "--role", "viewer").code == 0


def test_keys_are_listed_in_the_order_in_which_they_were_made(relet, create, clock):
    made = []
    for name in ("b", "c", "a"):
        made.append(create(name)[0])
        clock.advance(1)
    operate(NoteUses(ids=[made[1]]))
    relet("token", "revoke", "a")
    listed = relet("token", "ls")
    head, *rows = listed.out.splitlines()
    assert re.split(r"  +", head) == ["ID", "NAME", "ROLE", "TENANT", "QUEUES", "EXPIRES", "LAST USED", "STATE"]
    assert [row.split()[:2] for row in rows] == [[made[0], "b"], [made[1], "c"]]
    assert [row.split()[6] != "-" for row in rows] == [False, True]
    everyone = relet("token", "ls", "--all").out.splitlines()[1:]
    assert [(row.split()[1], row.split()[-1]) for row in everyone] == [
        ("b", "good"), ("c", "good"), ("a", "revoked"),
    ]  # fmt: skip


def test_what_is_listed_opens_nothing(relet, create):
    key_id, text = create()
    listed = relet("token", "ls", "--all", "--json")
    (key,) = listed.json["keys"]
    assert key["id"] == key_id
    for shown in (listed.out, relet("token", "ls").out):
        assert text not in shown
        assert digest_of(text) not in shown


def test_a_key_for_some_queues_and_one_that_has_expired_are_told_from_others(relet, create, clock):
    create("ci", "worker", "--queue", "a", "--queue", "b", "--scope", "audit", "--expires", "1h")
    clock.advance("1h")
    (row,) = relet("token", "ls").out.splitlines()[1:]
    assert "worker + audit  default  a,b" in row
    assert row.endswith("expired")


def test_pages_go_on_after_an_id(relet, create):
    made = {create(name)[0] for name in ("a", "b", "c")}
    first = relet("token", "ls", "--limit", "2")
    following = re.search(r"relet token ls --after (\w+)", first.err)[1]
    seen = {row.split()[0] for row in first.out.splitlines()[1:]}
    second = relet("token", "ls", "--limit", "2", "--after", following, "--json").json
    assert seen | {key["id"] for key in second["keys"]} == made
    assert second["next"] is None


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_key_is_revoked_by_its_id_or_its_name(relet, create, by):
    key_id, _ = create()
    done = relet("token", "revoke", key_id if by == "id" else "ci")
    assert (done.code, done.out) == (0, f"revoked {key_id} ci\n")
    assert operate(FindKeys(ids=[key_id]))[0].key.revoked
    assert relet("token", "revoke", key_id, "--json").json["revoked"]


def test_a_key_that_is_not_there_is_told(relet, create):
    create()
    done = relet("token", "revoke", "other")
    assert done.code == 10
    assert "relet token ls" in done.err


@pytest.mark.parametrize("args", [["ls"], ["revoke", "ci"]])
def test_a_store_that_is_not_there_is_made_by_no_look(relet, folder, args):
    assert relet("token", *args).code == 10
    assert list(folder.iterdir()) == []


def test_an_empty_list_says_where_it_looked(relet, db, folder):
    done = relet("token", "ls")
    assert (done.code, done.out) == (0, "")
    assert f"no keys in {folder}/relet.db" in done.err
    assert relet("token", "ls", "--json").json == {"keys": [], "next": None}


@pytest.mark.parametrize("args", [["ls"], ["revoke", "ci"], ["create", "ci", "--role", "viewer"]])
@pytest.mark.parametrize("url", ["http://127.0.0.1:8787", "https://lt_x_secret@example.org"])
def test_a_service_makes_no_keys_for_those_who_ask_it(relet, url, args):
    done = relet("token", *args, "--url", url)
    assert (done.code, done.out) == (2, "")
    assert "--url sqlite:///work.db or --url postgresql://host/database" in done.err
    assert "secret" not in done.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--role", "root"], "'root' is not one of 'viewer'"),
        ([], "Missing option '--role'"),
        (["--role", "viewer", "--expires", "soon"], "expires: 'soon' is not a duration"),
        (["--role", "viewer", "--expires", "1ms"], "expires: '1ms' is outside 1s to"),
        (["--role", "viewer", "--queue", ""], "queue: has 0 characters"),
        (["--role", "viewer", *[part for n in range(101) for part in ("--queue", str(n))]], "queue: 101 are named"),
        (["--role", "viewer", "--scope", "all"], "'all' is not one of 'read'"),
        (["--role", "viewer", "--url", "sqlite://"], "a store in memory"),
    ],
)
def test_what_makes_no_key_is_refused_by_name_and_makes_no_store(relet, folder, args, words):
    done = relet("token", "create", "ci", *args)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("args", "words"), [([], "Missing command"), (["make"], "No such command 'make'")])
def test_a_command_that_is_none_is_refused_with_where_to_look(relet, args, words):
    done = relet("token", *args)
    assert done.code == 2
    assert words in done.err
    assert "relet token --help" in done.err


def test_options_of_every_command_work_before_and_after_each_word(relet, create):
    create()
    for args in (["--json", "token", "ls"], ["token", "--json", "ls"], ["token", "ls", "--json"]):
        assert len(json.loads(relet(*args).out)["keys"]) == 1
    told = relet("token", "--help").out
    assert all(word in told for word in ("create", "ls", "revoke", "--url", "relet token revoke ci"))


def test_what_names_hold_is_printed_harmless(relet, create):
    create("ci", "worker", "--queue", "a\u202eb")
    listed = relet("token", "ls")
    assert "\\u202e" in listed.out
    assert "\u202e" not in listed.out
