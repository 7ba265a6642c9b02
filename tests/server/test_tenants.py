"""A tenant is known from the credential alone: whatever a request names of another one's does not exist."""

import hashlib

import msgspec
import pytest

from relet.core.access import Role
from relet.core.model import Handle
from relet.core.operation import operation_of
from relet.core.rules.attach import Attach
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.end_effect import EndEffect
from relet.core.rules.inspect import Changes, FindTask, ListTasks
from relet.core.rules.inspect_work import Effects
from relet.core.rules.renew import Renew
from relet.core.rules.save import Save
from relet.core.rules.submit import NewTask, Submit
from relet.core.tx import TaskFilter
from relet.core.work import Outcome
from tests.server.world import CANARY, World, raw

REFUSED_INSIDE = {"renew", "complete"}
"""Batches: each handle of them is answered for itself."""


@pytest.fixture
def victim(served):
    return World(served, "a")


@pytest.fixture
def attacker(served):
    return World(served, "b")


@pytest.fixture
def key(served, attacker):
    return served.key(Role.ADMIN, tenant="b")


def rows_of(served, tenant):
    """All rows that are not the other tenant's: those of the given one, and those that belong to a task of it."""
    rows = served.rows()
    seqs = {row[0] for row in rows["tasks"] if tenant in row}
    assert seqs
    return {
        "tasks": [row for row in rows["tasks"] if row[0] in seqs],
        "inputs": [row for row in rows["inputs"] if row[0] in seqs],
        "others": {
            table: [row for row in rows[table] if tenant in row or (table in OF_TASKS and seqs & set(row[:3]))]
            for table in rows.keys() - {"tasks", "inputs", "tokens"}
        },
    }


OF_TASKS = {"checkpoints", "steps", "artifacts"}


def nobody(value):
    """The same request about what nobody has: each id is one that was never given out."""
    match value:
        case Handle():
            return Handle(f"no-{value.task_id}", value.token + 10_000, value.secret)
        case msgspec.Struct():
            changed = {}
            for name in value.__struct_fields__:
                inner = getattr(value, name)
                if name in ("task_id", "effect_id", "after") and isinstance(inner, str):
                    changed[name] = f"no-{inner}"
                elif isinstance(inner, (Handle, list, msgspec.Struct)):
                    changed[name] = nobody(inner)
            return msgspec.structs.replace(value, **changed)
        case list():
            return [nobody(item) for item in value]
    return value


def shape(reply):
    """What an answer tells, apart from the ids that were asked for."""
    if reply.is_problem:
        return reply.status, reply.code
    return reply.status, msgspec.json.decode(reply.body)


def names():
    """Where each request of the world stands in it, by its operation."""
    return [f"{n}-{name}" for n, name in enumerate(NAMES)]


NAMES = (
    "submit", "claim", "claim", "check", "renew", "save", "load", "keep_step", "attach", "progress", "start_effect",
    "end_effect", "complete", "complete", "complete", "fail", "release", "park", "decide", "signal", "reconcile",
    "cancel", "requeue", "look", "task", "tasks", "history", "changes", "memo", "read_step", "attached", "steps",
    "checkpoints", "artifacts", "waits", "effects", "effects", "rejections",
)  # fmt: skip


def test_the_requests_are_those_that_are_named(served, victim):
    assert tuple(operation_of(type(request)).name for request in victim.requests()) == NAMES


@pytest.mark.parametrize("n", range(len(NAMES)), ids=names())
def test_what_is_another_tenants_is_as_if_it_did_not_exist(served, victim, attacker, key, n):
    request = victim.requests()[n]
    before = rows_of(served, "a")
    reply = served.call(request, key)
    assert rows_of(served, "a") == before
    assert CANARY.encode() + b"a" not in reply.body
    served_nobody = served.call(nobody(request), key)
    if NAMES[n] in REFUSED_INSIDE:
        assert reply.status == 200
        assert [item["error"]["code"] for item in failures(reply)] == [
            item["error"]["code"] for item in failures(served_nobody)
        ], "each of them is refused alike"
        assert failures(reply)
    else:
        assert shape(reply) == shape(served_nobody)
        if reply.status == 200:
            assert nothing_in(reply.json), reply.json
        else:
            assert (reply.status, reply.is_problem) == (404, True)


def failures(reply):
    """What was refused within an answer."""
    found = reply.json
    parts = found if isinstance(found, list) else found.values()
    return [item for part in parts for item in (part if isinstance(part, list) else [part]) if "error" in item]


def nothing_in(answer):
    if isinstance(answer, dict):
        return all(nothing_in(value) for name, value in answer.items() if name not in ("cursor", "state"))
    return answer in ([], None, False, 0)


@pytest.mark.parametrize("n", range(17))
def test_what_is_on_all_of_a_tenant_is_on_none_of_another(served, victim, attacker, key, n):
    request = victim.sweeping()[n]
    before = rows_of(served, "a")
    reply = served.call(request, key)
    assert reply.status == 200, reply
    assert rows_of(served, "a") == before
    assert CANARY.encode() + b"a" not in reply.body
    assert b'"a-q-' not in reply.body


def test_all_of_them_are_tried(victim):
    assert len(victim.sweeping()) == 17


@pytest.mark.parametrize("role", [Role.ADMIN, Role.WORKER])
def test_a_batch_with_one_foreign_element_changes_nothing_of_it(served, victim, attacker, role):
    key, before = served.key(role, tenant="b"), rows_of(served, "a")
    (own,) = attacker.ask(Claim(holder="A", task_id=attacker.id("ready")))
    completions = [Completion(handle=handle, result=raw(2)) for handle in (own.handle, victim.held)]
    reply = served.call(Complete(completions=completions), key)
    assert len(failures(reply)) == 1
    assert rows_of(served, "a") == before
    reply = served.call(Renew(handles=[victim.held]), key)
    assert len(failures(reply)) == 1
    assert rows_of(served, "a") == before


def test_children_under_a_foreign_lease_are_refused_whole(served, victim, key):
    child = [NewTask(id="child", input=raw(1))]
    reply = served.call(Submit(queue="q", kind="k", tasks=child, under=victim.held), key)
    assert (reply.status, reply.code) == (404, "RELET-HANDLE")
    assert served.call(FindTask(task_id="child"), key).status == 404


def test_a_lease_of_ones_own_does_not_open_an_effect_of_another(served, victim, attacker, key):
    before = rows_of(served, "a")
    reply = served.call(
        EndEffect(handle=attacker.held, effect_id=victim.effect, attempt=1, outcome=Outcome.APPLIED), key
    )
    assert reply.status == 404
    assert rows_of(served, "a") == before


def test_a_cursor_of_another_tenant_shows_nothing_of_it(served, victim, attacker, key):
    last = served.call(Changes(), key).json["cursor"]
    for after in range(last + 1):
        reply = served.call(Changes(after=after, limit=1), key)
        assert b'"a-q-' not in reply.body
    assert served.call(ListTasks(which=TaskFilter(), after=victim.id("held")), key).status == 404
    assert served.call(Effects(after=victim.effect), key).status == 404


def test_a_stream_tells_nothing_of_another_tenant(served, victim, key):
    reply = served.ask("GET", "/v1/changes/stream?after=0", key=key)
    assert reply.status == 200
    assert b"a-q-" not in reply.body
    ask = "/v1/changes/stream?after=0&task_id="
    one = served.ask("GET", f"{ask}{victim.id('held')}", key=key)
    assert (one.status, one.body) == (200, served.ask("GET", f"{ask}nobodys", key=key).body)


def test_a_request_id_of_another_tenant_gets_no_lease_of_it(served, victim, key):
    mine = Claim(holder="A", task_id=victim.id("ready"), request_id="same")
    (grant,) = victim.ask(mine)
    reply = served.call(msgspec.structs.replace(mine, again=True), key)
    assert grant.handle.secret.encode() not in reply.body
    reply = served.call(Claim(holder="A", queues=["q"], request_id="same", again=True, n=9), key)
    assert grant.handle.secret.encode() not in reply.body


# -- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_bytes_are_given_to_whoever_names_them_and_to_nobody_else(served, victim, attacker, key, method):
    mine, path = served.key(Role.VIEWER), f"/v1/artifacts/{victim.digest}"
    assert served.ask(method, path, key=mine).status == 200
    there, absent = served.ask(method, path, key=key), served.ask(method, f"/v1/artifacts/{'0' * 64}", key=key)
    assert (there.status, absent.status) == (404, 404)
    assert there.body.replace(victim.digest.encode(), b"0" * 64) == absent.body


def test_who_names_bytes_without_having_them_gets_none(served, victim, attacker, key):
    """A digest is no secret: it stands in events and in logs."""
    uri = f"artifact:{victim.digest}"
    naming = Attach(handle=attacker.held, name="stolen", uri=uri, sha256=victim.digest, size=1)
    before = served.rows()
    assert served.call(naming, key).status == 404
    address = msgspec.Raw(f'{{"relet:artifact":"{victim.digest}","size":{len(victim.bytes)}}}'.encode())
    for request in (
        Save(handle=attacker.held, name="main", value=address),
        Submit(queue="q", kind="k", tasks=[NewTask(id="thief", input=address)]),
        Complete(completions=[Completion(handle=attacker.held, result=address)]),
    ):
        assert served.call(request, key).status == 404
    assert served.rows() == before
    assert served.ask("GET", f"/v1/artifacts/{victim.digest}", key=key).status == 404


def test_who_sends_the_bytes_may_name_them(served, victim, attacker, key):
    path, uri = f"/v1/artifacts/{victim.digest}", f"artifact:{victim.digest}"
    assert served.ask("PUT", path, key=key, body=victim.bytes).status == 204
    assert served.ask("HEAD", path, key=key).status == 200, "its own, though nothing names it yet"
    naming = Attach(handle=attacker.held, name="mine", uri=uri, sha256=victim.digest, size=len(victim.bytes))
    assert served.call(naming, key).status == 200


def test_what_one_tenant_has_sent_and_not_named_yet_is_not_there_for_another(served, key):
    fresh = b"sent, and not named yet"
    path = f"/v1/artifacts/{hashlib.sha256(fresh).hexdigest()}"
    mine = served.key()
    assert served.ask("PUT", path, key=mine, body=fresh).status == 204
    assert (served.ask("GET", path, key=mine).status, served.ask("GET", path, key=key).status) == (200, 404)


def test_that_bytes_were_sent_cannot_be_claimed_by_who_has_only_their_digest(served, victim, attacker, key):
    """What the service keeps beside the bytes can be made with a secret of the store alone."""
    for text in (f"\0sent\0b\0\0{victim.digest}", f"b{victim.digest}", victim.digest):
        forged = text.encode()
        assert (
            served.ask("PUT", f"/v1/artifacts/{hashlib.sha256(forged).hexdigest()}", key=key, body=forged).status
            == 204
        )
    assert served.ask("GET", f"/v1/artifacts/{victim.digest}", key=key).status == 404


# -- queues ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def other(served, victim):
    return World(served, "a", queue="other")


@pytest.fixture
def bound(served, other):
    return served.key(Role.ADMIN, queues=["other"])


@pytest.mark.parametrize("n", range(len(NAMES)), ids=names())
def test_a_key_that_is_bound_to_queues_changes_and_sees_nothing_of_another_one(served, victim, other, bound, n):
    request, before = victim.requests()[n], served.rows()
    reply = served.call(request, bound)
    assert served.rows() == before
    assert (reply.status in (403, 404), reply.is_problem) == (True, True), reply


@pytest.mark.parametrize("n", range(len(NAMES)), ids=names())
def test_it_does_all_of_it_on_its_own_queue(served, victim, other, bound, n):
    reply = served.call(other.requests()[n], bound)
    if NAMES[n] == "tasks" or (NAMES[n] == "effects" and not other.requests()[n].task_id):
        assert (reply.status, reply.json["facts"]) == (403, {"field": "queue"}), "it names no queue and no task"
    else:
        assert reply.status in (200, 409), reply


SNEAKY = {
    "what it claims next": lambda mine, theirs: Complete(
        completions=[Completion(handle=mine.held, result=raw(1))], next=Claim(holder="B", queues=["q"])
    ),
    "another result beside its own": lambda mine, theirs: Complete(
        completions=[Completion(handle=handle, result=raw(1)) for handle in (mine.held, theirs.held)]
    ),
    "one more queue": lambda mine, theirs: Claim(holder="B", queues=["other", "q"]),
    "another lease beside its own": lambda mine, theirs: Renew(handles=[mine.held, theirs.held]),
    "another effect": lambda mine, theirs: EndEffect(
        handle=mine.held, effect_id=theirs.effect, attempt=1, outcome=Outcome.APPLIED
    ),
    "children of another task": lambda mine, theirs: Submit(
        queue="other", kind="k", tasks=[NewTask(id="c", input=raw(1))], under=theirs.held
    ),
    "another's last lease": lambda mine, theirs: Claim(holder="B", task_id=mine.id("ready"), handle=theirs.held),
    "a page after another task": lambda mine, theirs: ListTasks(
        which=TaskFilter(queue="other"), after=theirs.id("held")
    ),
    "a page after another effect": lambda mine, theirs: Effects(task_id=mine.id("held"), after=theirs.effect),
}  # fmt: skip


@pytest.mark.parametrize("sneaky", SNEAKY)
def test_no_part_of_a_request_reaches_beyond_the_queues_of_its_key(served, victim, other, bound, sneaky):
    before = served.rows()
    reply = served.call(SNEAKY[sneaky](other, victim), bound)
    assert served.rows() == before
    assert (reply.status in (403, 404), reply.is_problem) == (True, True), reply


def test_bytes_of_another_queue_are_not_given_to_it(served, victim, other, bound):
    assert served.ask("GET", f"/v1/artifacts/{other.digest}", key=bound).status == 200
    assert served.ask("GET", f"/v1/artifacts/{victim.digest}", key=bound).status == 404
    fresh = b"sent, and not named yet"
    path = f"/v1/artifacts/{hashlib.sha256(fresh).hexdigest()}"
    assert served.ask("PUT", path, key=served.key(), body=fresh).status == 204
    assert served.ask("GET", path, key=bound).status == 404, "who sent it was not bound to this queue"


def test_every_field_that_holds_an_id_is_looked_at():
    """A new one must be added to what bound keys are checked by, and to this list."""
    from relet.core.catalog import OPERATIONS

    found = set()
    for operation in OPERATIONS:
        for name, hint in operation.request.__annotations__.items():
            if "TaskId" in str(hint) or "Handle" in str(hint) or name.endswith("_id"):
                found.add((operation.name, name))
    fields = {name for _, name in found}
    assert fields == {
        "task_id",
        "handle",
        "handles",
        "under",
        "effect_id",
        "call_id",
        "request_id",
        "key_id",
        "after",
    }
