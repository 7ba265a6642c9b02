"""Being told of commits is a convenience: where the line is dead, one looks; and it is noticed and made anew."""

import threading
import time

import psycopg
import pytest

import relet
from relet import noticing
from relet.store.postgres import watch
from relet.store.postgres.line import Line
from relet.store.postgres.place import conninfo_of
from relet.store.postgres.watch import Herald
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
ROUNDS = 3
LATE_S = 1.0


@pytest.fixture
def told(tcp_server, proxy):
    """A client whose notifications alone come by way of the proxy."""
    with tcp_server.database() as url:
        name = url.partition("/test_")[2].partition("?")[0]
        with relet.connect(url) as client:
            store = client.backend.store
            client.aside = store.herald = Herald(
                conninfo_of(proxy.url(f"test_{name}")), store.place, f"relet_{store.store_id[:16]}", listens=True
            )
            yield client


@pytest.fixture
def other(told):
    with relet.connect(told.backend.url) as client:
        yield client


def picked_up_after(told, other):
    """How long somebody who waits for a task takes to get one that was just submitted."""
    found = []
    thread = threading.Thread(target=lambda: found.append((told.claim("work", wait=20), time.monotonic())))
    thread.start()
    eventually(lambda: told.aside.changed._waiters)  # it has looked, and waits
    other.submit("work")
    began = time.monotonic()
    thread.join(30)
    lease, at = found[0]
    lease.complete()
    return at - began


def test_pg_03_a_dead_notification_line_is_polled_around(told, other, proxy):
    picked_up_after(told, other)
    eventually(lambda: told.aside.is_told)
    assert max(picked_up_after(told, other) for _ in range(ROUNDS)) < LATE_S
    proxy.black_hole()
    for _ in range(ROUNDS):
        assert picked_up_after(told, other) < noticing.LOOK_ANYWAY_S + LATE_S


@pytest.mark.case("PG-03")
def test_a_dead_notification_line_is_noticed_and_a_new_one_is_made(told, other, proxy, monkeypatch):
    monkeypatch.setattr(watch, "ALIVE_EVERY_S", 0.5)
    monkeypatch.setattr(watch, "ALIVE_S", 0.5)
    picked_up_after(told, other)
    eventually(lambda: told.aside.is_told)
    proxy.black_hole()
    eventually(lambda: not told.aside.is_told)
    # What had been connected before is dead for good.
    proxy.cut()
    proxy.pass_on()
    eventually(lambda: told.aside.is_told)
    assert max(picked_up_after(told, other) for _ in range(ROUNDS)) < LATE_S


@pytest.mark.case("PG-03")
def test_a_line_that_fell_silent_says_since_when_and_a_new_one_that_it_is_up(told, proxy, monkeypatch):
    monkeypatch.setattr(watch, "ALIVE_EVERY_S", 0.1)
    monkeypatch.setattr(watch, "ALIVE_S", 0.5)
    waiter = told.backend.watch()
    eventually(lambda: told.aside.is_told)
    first = waiter.silent_since
    eventually(lambda: waiter.silent_since > first)
    proxy.black_hole()
    eventually(lambda: not told.aside.is_told)
    dead = waiter.silent_since
    told.submit("work")
    assert waiter.silent_since == dead < time.monotonic() - 0.5, "only the line itself proves that it is up"
    proxy.cut()
    proxy.pass_on()
    eventually(lambda: waiter.silent_since > dead)


def test_a_line_that_never_was_up_is_silent_since_it_was_wanted(told, proxy):
    proxy.black_hole()
    began = time.monotonic()
    waiter = told.backend.watch()
    wanted = waiter.silent_since
    assert began <= wanted <= time.monotonic()
    proxy.cut()
    proxy.pass_on()
    eventually(lambda: told.aside.is_told)
    assert waiter.silent_since > wanted


def test_where_nobody_would_tell_no_line_is_silent(tcp_server, monkeypatch):
    monkeypatch.setenv("RELET_POSTGRES_WITHOUT", "listen")
    with tcp_server.database() as url, relet.connect(url) as db:
        assert db.backend.watch().silent_since is None


def test_who_tells_is_not_stopped_by_a_line_that_fell_silent(told, other, proxy, monkeypatch):
    monkeypatch.setattr(watch, "ALIVE_S", 0.5)
    told.submit("work")
    proxy.black_hole()
    began = time.monotonic()
    for _ in range(ROUNDS):
        told.submit("work")
    assert time.monotonic() - began < LATE_S, "nobody waits for those who are told"
    proxy.cut()
    proxy.pass_on()
    with psycopg.connect(told.backend.url, autocommit=True) as listener:
        listener.execute(f"LISTEN relet_{told.backend.store.store_id[:16]}")

        def is_heard():
            told.submit("work")
            return [*listener.notifies(timeout=0.2, stop_after=1)]

        assert eventually(is_heard)


def test_without_a_line_one_looks_more_often(tcp_server, monkeypatch):
    monkeypatch.setenv("RELET_POSTGRES_WITHOUT", "listen")
    with tcp_server.database() as url, relet.connect(url) as told, relet.connect(url) as other:
        told.aside = told.backend.store.herald
        assert not told.aside.listens
        assert max(picked_up_after(told, other) for _ in range(ROUNDS)) < noticing.LOOK_UNTOLD_S + LATE_S


def test_a_claim_that_waits_wakes_neither_itself_nor_others(tcp_server):
    with tcp_server.database() as url, relet.connect(url) as db, relet.connect(url) as other:
        other.backend.store.herald.hear()
        eventually(lambda: other.backend.store.herald.is_told)
        store, asked = db.backend.store, []
        real, heard = store._once, other.backend.store.herald.version
        store._once = lambda *args, **named: (asked.append(1), real(*args, **named))[1]
        assert db.claim("work", wait=1) is None
        assert 3 < len(asked) < 40, "as often as it looks, and not as often as it can"
        assert other.backend.store.herald.version == heard, "nothing has changed"
        db.submit("work")
        eventually(lambda: other.backend.store.herald.version > heard)


def test_who_commits_is_not_told_of_it_by_the_server_too(tcp_server, monkeypatch):
    heard, real = [], Line.notifies

    def notifies(self, **named):
        for told in real(self, **named):
            yield told
            heard.append(told.pid)

    monkeypatch.setattr(Line, "notifies", notifies)
    with tcp_server.database() as url, relet.connect(url) as db, relet.connect(url) as other:
        heralds = [client.backend.store.herald for client in (db, other)]
        for herald in heralds:
            herald.hear()
            eventually(lambda herald=herald: herald.is_told)
        db.submit("work")
        eventually(lambda: len(heard) == 2)
        # The other one of the same process hears of it, as those of any other process do.
        assert [herald.version for herald in heralds] == [1, 1]
        other.submit("work")
        eventually(lambda: len(heard) == 4)
        assert [herald.version for herald in heralds] == [2, 2]
