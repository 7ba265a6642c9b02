"""What few may do, and whom the service kept out, is written down: in order, without payloads, for its own scope."""

import pytest

from relet.core.access import NEEDS, Role, Scope
from relet.core.errors import Unavailable
from relet.core.operation import operation_of
from relet.core.redaction import SECRETS
from relet.core.rules.audit import AddAudit, ListAudit
from relet.core.rules.cancel import Cancel
from relet.core.rules.inspect import FindTask
from relet.core.rules.set_queue import SetQueue
from relet.core.wire import encode
from relet.server.audit import PENDING_MAX, WATCHED
from tests.server.served import HERE, ask
from tests.server.world import CANARY, World


def log(served, tenant="a"):
    served.loop.run_until_complete(served.written())
    return served.backend.operate(ListAudit(tenant=tenant))


def told(served, tenant="a"):
    return [(line.operation, line.outcome, line.target) for line in reversed(log(served, tenant))]


def test_whatever_only_few_may_do_is_told_of_whether_it_was_done_or_not(served):
    world, key = World(served, "a"), served.key(name="ann")
    requests = [one for one in (*world.requests(), *world.sweeping()) if needs(one) in WATCHED]
    assert {needs(one) for one in requests} == {Scope.APPROVE, Scope.OPERATE}
    for request in requests:
        served.call(request, key)
    served.call(Cancel(task_id="nobodys", reason="r"), key)
    lines = log(served)
    assert [line.operation for line in reversed(lines)] == [*map(name_of, requests), "cancel"]
    assert {(line.key_name, line.tenant, line.address) for line in lines} == {("ann", "a", HERE[0])}
    assert (lines[0].outcome, lines[0].target) == ("RELET-NOT-FOUND", "nobodys")
    assert CANARY not in repr(lines)


def needs(request):
    return NEEDS[name_of(request)]


def name_of(request):
    return operation_of(type(request)).name


def test_what_everybody_does_is_not(served):
    world, key = World(served, "a"), served.key()
    for request in (*world.requests(), *world.sweeping()):
        if needs(request) not in WATCHED:
            served.call(request, key)
    assert told(served) == []


def test_by_whom_and_for_whom_stays_whatever_is_a_secret_of_the_process(served):
    """The log is asked by them: a line without its tenant is nobody's for ever."""
    for value in ("ann-of-ops", "tenant-a1"):
        SECRETS.add(value)
    try:
        served.call(Cancel(task_id="t", reason="r"), served.key(name="ann-of-ops", tenant="tenant-a1"))
        (line,) = log(served, "tenant-a1")
    finally:
        SECRETS.forget()
    assert (line.key_name, line.tenant, line.address) == ("ann-of-ops", "tenant-a1", HERE[0])


def test_whom_a_key_kept_out_is_told_of_with_the_key(served):
    key = served.key(Role.VIEWER, name="eve")
    served.call(Cancel(task_id="t", reason="r"), key)
    served.call(SetQueue(name="q", paused=True), served.key(queues=["other"]))
    served.ask("GET", "/v1/audit", key=key)
    served.call(FindTask(task_id="t"), key)
    assert told(served) == [
        ("cancel", "RELET-FORBIDDEN", None), ("set_queue", "RELET-FORBIDDEN", None),
        ("audit", "RELET-FORBIDDEN", None),
    ]  # fmt: skip
    assert log(served)[-1].key_name == "eve"


def test_whom_no_key_let_in_is_told_of_with_the_address(served):
    good, other = served.key(), served.key()
    forged = good[:-43] + other[-43:]
    for key in (None, "garbage", forged, f"lt_{'0' * 12}_{'A' * 43}"):
        served.ask("GET", "/v1/tasks", key=key)
    lines = log(served, None)
    assert [(line.operation, line.outcome, line.key_id, line.tenant, line.address) for line in lines] == [
        ("tasks", "RELET-NO-CREDENTIAL", None, None, HERE[0])
    ] * 4
    assert told(served) == []


def test_a_key_that_was_good_once_is_told_of_to_its_own_tenant_and_to_nobody_who_asks(served):
    revoked, expired = served.key(name="old"), served.key(name="late", expires_ms=1_000)
    served.revoke(revoked)
    served.clock.advance("2s")
    replies = [served.ask("GET", "/v1/tasks", key=key) for key in (revoked, expired, "garbage")]
    assert len({(reply.status, reply.body) for reply in replies}) == 1
    assert [(line.key_name, line.key_id, line.outcome) for line in reversed(log(served))] == [
        ("old", revoked.split("_")[1], "RELET-NO-CREDENTIAL"), ("late", expired.split("_")[1], "RELET-NO-CREDENTIAL"),
    ]  # fmt: skip
    assert told(served, "b") == []
    page = served.ask("GET", "/v1/audit", key=served.key(name="ann")).json
    assert [line["key_name"] for line in page] == ["late", "old"]


def test_many_wrong_keys_do_not_fill_the_log(served):
    for n in range(200):
        served.ask("GET", "/v1/tasks", key=f"wrong-{n}")
    assert 25 < len(log(served, None)) < 50


def test_it_is_read_by_page_newest_first_and_by_its_own_tenant(served):
    key, other = served.key(), served.key(tenant="b")
    for n in range(5):
        served.call(Cancel(task_id=f"t{n}", reason="r"), key)
        served.call(Cancel(task_id="theirs", reason="r"), other)
    log(served)
    first = served.ask("GET", "/v1/audit?limit=2", key=key).json
    assert [line["target"] for line in first] == ["t4", "t3"]
    rest = served.ask("GET", f"/v1/audit?before={first[-1]['seq']}", key=key).json
    assert [line["target"] for line in rest] == ["t2", "t1", "t0"]


def test_it_is_read_on_from_any_line_too_oldest_first(served):
    key = served.key()
    for n in range(4):
        served.call(Cancel(task_id=f"t{n}", reason="r"), key)
    log(served)
    assert [line["target"] for line in served.ask("GET", "/v1/audit?after=0&limit=2", key=key).json] == ["t0", "t1"]
    assert [line["target"] for line in served.ask("GET", "/v1/audit?after=2&before=4", key=key).json] == ["t2"]


@pytest.mark.parametrize(
    "query",
    ["after=-1", "after=x", "limit=0", "limit=1001", "limit=x", "before=0", "before=-1", "before=1e3", "limit="],
)
def test_a_wrong_page_is_refused_by_its_field(served, query):
    reply = served.ask("GET", f"/v1/audit?{query}", key=served.key())
    assert (reply.status, reply.json["facts"]["field"]) == (400, query.partition("=")[0])


def test_reading_it_is_told_of_too(served):
    served.ask("GET", "/v1/audit", key=served.key())
    assert told(served) == [("audit", "ok", None)]


def test_the_chain_holds_after_all_of_it(served):
    key = served.key()
    for n in range(30):
        served.call(Cancel(task_id=f"t{n}", reason="r"), key)
        served.ask("GET", "/v1/tasks", key="wrong")
    log(served)
    assert served.db.verify().findings == []


def test_no_request_waits_for_it_and_no_line_is_lost_while_the_store_does_not_take_it(served, monkeypatch):
    operate, down = served.service.operate, True

    async def refusing(ask):
        if down and isinstance(ask, AddAudit):
            raise Unavailable("busy")
        return await operate(ask)

    monkeypatch.setattr(served.service, "operate", refusing)
    key = served.key()
    for n in range(3):
        assert served.call(Cancel(task_id=f"t{n}", reason="r"), key).status == 404
    with pytest.raises(Unavailable):
        served.loop.run_until_complete(served.audit.write())
    down = False
    assert [target for _, _, target in told(served)] == ["t0", "t1", "t2"]


def test_beyond_what_may_wait_the_oldest_are_lost_and_the_process_says_so(served, monkeypatch, caplog):
    monkeypatch.setattr("relet.server.audit.PENDING_MAX", 2)
    assert PENDING_MAX > 1_000
    key = served.key()
    for n in range(5):
        served.call(Cancel(task_id=f"t{n}", reason="r"), key)
    assert [target for _, _, target in told(served)] == ["t3", "t4"]
    assert "3 lines of the audit log were lost" in caplog.text


def test_a_line_that_makes_room_while_it_is_written_is_not_lost_and_none_goes_with_it(served, monkeypatch, caplog):
    monkeypatch.setattr("relet.server.audit.PENDING_MAX", 2)
    key, operate = served.key(), served.service.operate
    for n in range(2):
        served.call(Cancel(task_id=f"t{n}", reason="r"), key)

    async def slowly(ask):
        if isinstance(ask, AddAudit) and ask.acts[0].target == "t0":
            monkeypatch.setattr(served.service, "operate", operate)
            await ask_for(served, Cancel(task_id="t2", reason="r"), key)
        return await operate(ask)

    monkeypatch.setattr(served.service, "operate", slowly)
    assert [target for _, _, target in told(served)] == ["t0", "t1", "t2"]
    assert "lost" not in caplog.text


async def ask_for(served, request, key):
    await ask(served.app, "POST", f"/v1/{name_of(request)}", key=key, body=encode(request))
