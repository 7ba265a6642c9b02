"""Nobody answers their own question: what was asked with a key is decided with another one."""

import msgspec
import pytest

from relet.core.access import Role, Scope
from relet.core.model import Handle
from relet.core.rules.claim import Claim
from relet.core.rules.decide import Decide
from relet.core.rules.inspect import FindTask, History
from relet.core.rules.park import Park
from relet.core.rules.signal import Signal
from relet.core.work import DecisionKind, WaitKind
from tests.server.world import raw

YES = Decide(task_id="t", name="publish", kind=DecisionKind.ACCEPT, by="ann", value=raw(None))


@pytest.fixture
def keys(served):
    """Two that may both work and decide."""
    return [served.key(Role.WORKER, scopes=[Scope.APPROVE], name=name) for name in ("agent", "person")]


@pytest.fixture
def asked(served, keys):
    """A task that waits, asked with the first of them."""
    served.db.submit("q", id="t")
    park(served, keys[0])


def park(served, key, **options):
    (grant,) = served.call(Claim(holder="A", task_id="t"), key).json
    ask = Park(
        handle=msgspec.convert(grant["handle"], type=Handle), name="publish", kind=WaitKind.APPROVAL, ask=raw("?")
    )
    assert served.call(msgspec.structs.replace(ask, **options), key).status == 200


def test_the_key_that_asked_does_not_decide(served, keys, asked):
    before = served.rows()
    reply = served.call(YES, keys[0])
    assert (reply.status, reply.code) == (403, "RELET-OWN-QUESTION")
    assert "relet token create NAME --role approver" in reply.json["detail"]
    assert served.rows() == before


def test_another_key_does(served, keys, asked):
    assert served.call(YES, keys[1]).status == 200
    assert served.db.backend.call(FindTask(task_id="t")).state == "ready"


def test_nobody_gets_around_it_by_what_is_sent(served, keys, asked):
    for claimed in (keys[1].split("_")[1], None, "other"):
        reply = served.call(msgspec.structs.replace(YES, key_id=claimed), keys[0])
        assert (reply.status, reply.code) == (403, "RELET-OWN-QUESTION")
    for digest in (None, "other"):
        assert served.call(msgspec.structs.replace(YES, digest=digest), keys[0]).status == 403


def test_nor_by_what_is_sent_with_the_question(served, keys):
    served.db.submit("q", id="t")
    park(served, keys[0], key_id=keys[1].split("_")[1])
    assert served.call(YES, keys[0]).status == 403
    assert served.call(YES, keys[1]).status == 200


def test_it_is_the_last_one_who_asked(served, keys, asked):
    """The question of a later holder is that one's."""
    assert served.call(YES, keys[1]).status == 200
    park(served, keys[1])
    assert served.call(YES, keys[1]).status == 403
    assert served.call(YES, keys[0]).status == 200


def test_what_came_meanwhile_does_not_hide_who_asked(served, keys, asked):
    for n in range(10):
        assert served.call(Signal(task_id="t", name="note", call_id=f"s{n}", payload=raw(n)), keys[1]).status == 200
    assert served.call(YES, keys[0]).status == 403


def test_the_history_tells_who_asked(served, keys, asked):
    events = served.db.backend.call(History(task_id="t"))
    assert [event.detail["key_id"] for event in events if event.kind == "parked"] == [keys[0].split("_")[1]]


def test_beside_the_store_there_are_no_keys_and_whoever_reaches_it_decides(served):
    served.db.submit("q", id="t")
    (grant,) = served.db.backend.call(Claim(holder="A", task_id="t"))
    served.db.backend.call(Park(handle=grant.handle, name="publish", kind=WaitKind.APPROVAL, ask=raw("?")))
    assert served.db.backend.call(YES).kind is DecisionKind.ACCEPT
