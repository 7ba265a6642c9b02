"""What was undone is tried again; of what nobody can say how it ended, it is found out by repeating it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import relet
from relet.testing import Clock
from relet.testing.stores import open_store
from tests.cut_connection import Proxy
from tests.postgres import PostgresServer
from tests.store_postgres.striking import STRIKES, striking
from tests.store_postgres.verbs import AT_ONCE, MARK, TTL_S, VERBS, Desk
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
COMMITTING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
PAUSING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


@pytest.fixture(scope="module")
def server():
    with PostgresServer(tcp=True) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(server):
    with Proxy(server) as proxy:
        yield proxy


@pytest.fixture
def steered(server, proxy, tmp_path, monkeypatch):
    """A store by way of the proxy, whose statements go out as texts, so that the proxy knows them."""
    monkeypatch.setenv("RELET_POSTGRES_WITHOUT", "prepare")
    with open_store(tmp_path, Clock(), url=proxy.url()) as client:
        yield client


@pytest.fixture
def plain(server, proxy, tmp_path):
    """The same, with all that the server can do."""
    with open_store(tmp_path, Clock(), url=proxy.url()) as client:
        # Time stands still here, and so is the same before and after a wait.
        client.backend.store.is_hot = True
        yield client


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "save"])
@pytest.mark.parametrize("cut", ["cut_after", "cut_before"])
def test_a_commit_whose_answer_never_came_is_found_out_about(server, proxy, steered, verb, cut):
    smooth, rough = Desk(steered), Desk(steered)
    expected = VERBS[verb](smooth)
    getattr(proxy, cut)(b"COMMIT")
    answer = VERBS[verb](rough)
    assert proxy.fired.wait(10)
    assert answer == expected
    assert rough.rows(server.url()) == smooth.rows(server.url())


@pytest.mark.parametrize("verb", AT_ONCE)
@pytest.mark.parametrize("cut", ["cut_after", "cut_before"])
def test_a_statement_that_commits_itself_is_found_out_about(server, proxy, plain, monkeypatch, verb, cut):
    smooth, rough = Desk(plain), Desk(plain)
    expected = AT_ONCE[verb](smooth)
    with striking(monkeypatch) as blows:
        getattr(proxy, cut)(MARK.encode())
        answer = AT_ONCE[verb](rough)
        assert blows.alone, "it was not asked in one statement"
    assert proxy.fired.wait(10)
    assert answer == expected
    assert rough.rows(server.url()) == smooth.rows(server.url())


def test_a_value_whose_commit_was_not_answered_is_there_and_is_the_newest(proxy, steered):
    """At worst twice: what is saved says nothing about which save it was."""
    desk = Desk(steered)
    proxy.cut_after(b"COMMIT")
    assert VERBS["save"](desk) in {1, 2}
    assert proxy.fired.wait(10)
    assert desk.lease.load() == {"half": "done"}
    assert desk.lease.save("next") in {2, 3}
    assert desk.lease.load() == "next"


@pytest.mark.parametrize("code", STRIKES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_blow_at_any_statement_leaves_nothing_half_done(server, plain, monkeypatch, verb, code):
    smooth = Desk(plain)
    with striking(monkeypatch) as blows:
        expected = VERBS[verb](smooth)
        statements = blows.statements
        whole = smooth.rows(server.url())
        for at in range(1, statements + 1):
            desk = Desk(plain)
            blows.strike(at, code)
            answer = VERBS[verb](desk)
            assert blows.fell, f"statement {at} of {statements} was not struck"
            assert answer == expected, f"{code} at statement {at} of {statements}"
            assert desk.rows(server.url()) == whole, f"{code} at statement {at} of {statements}"


def test_a_claim_is_found_again_after_tokens_have_made_a_leap(server, proxy, steered, monkeypatch):
    desk = Desk(steered, held=False)
    other = Desk(steered, held=False)
    call = desk.db.backend.store.call
    seen = []

    def between(ask, *rest):
        seen.append(ask)
        if len(seen) == 2:
            # The server was started anew meanwhile, and others went on.
            server.execute("UPDATE relet.meta SET epoch = epoch + 1")
            monkeypatch.undo()
            assert other.db.claim("work") is not None
        return call(ask, *rest)

    monkeypatch.setattr(desk.db.backend.store, "call", between)
    proxy.cut_after(b"COMMIT")
    lease = desk.db.claim(["work", "other"], ttl=TTL_S)
    assert len(seen) == 2, "it was repeated"
    assert (lease.task_id, lease.attempt) == ("a", 1)
    assert len([row for row in desk.rows(server.url())["leases"] if row["ended"] is None]) == 1


def test_a_verb_that_must_not_be_repeated_says_that_its_outcome_is_unknown(proxy, steered):
    desk = Desk(steered)
    desk.lease.fail("for good", retry=False)
    proxy.cut_after(b"COMMIT")
    with pytest.raises(relet.OutcomeUnknown):
        desk.db.requeue("a")
    assert desk.db.task("a").state == "ready"


@pytest.mark.parametrize("how", ["steered", "plain"])
def test_a_commit_that_ends_late_gives_nothing_to_two(server, proxy, request, how):
    """The server goes on with it when its client has given up, and asks again by another connection."""
    desk = Desk(request.getfixturevalue(how), held=False)
    server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    server.execute("SELECT pg_reload_conf()")
    try:
        with ThreadPoolExecutor() as threads:
            claimed = threads.submit(desk.db.claim, "work", ttl=TTL_S)
            eventually(lambda: server.value(COMMITTING) == 1)
            proxy.cut()
            eventually(lambda: server.value(COMMITTING) > 1 or server.value(PAUSING))
            on_with_it(server)
            lease = claimed.result(20)
    finally:
        on_with_it(server)
    assert lease.task_id == "a"
    assert [row["ended"] for row in desk.rows(server.url())["leases"]] == [None]


def on_with_it(server):
    server.execute("ALTER SYSTEM RESET synchronous_standby_names")
    server.execute("SELECT pg_reload_conf()")
