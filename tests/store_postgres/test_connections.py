"""Connections that many share: nobody starves, none is lost, none is trusted for ever, and silence ends."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import psycopg
import pytest

import relet
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.inspect import FindTask
from relet.store.postgres import engine, pool, tries
from relet.store.postgres.clock import ServerClock
from relet.store.postgres.connect import connect, open_store, probe
from relet.store.postgres.line import Line
from relet.store.postgres.place import conninfo_of, place_of
from relet.store.postgres.pool import Connections, Waiter
from tests.cut_connection import Proxy
from tests.postgres import PostgresServer
from tests.waiting import Gate, eventually

pytestmark = pytest.mark.postgres
WAITERS = 100
CANCELLED = 200
TURNS = 20
DAY_S = 25 * 3_600


def connections_of(url, most=pool.CONNECTIONS_MAX):
    conninfo, place = conninfo_of(url), place_of(url, "relet")
    return Connections(conninfo, place, open_store(conninfo, place, "relet", ServerClock()).can, most=most)


@pytest.fixture
def connections(database):
    found = connections_of(database)
    yield found
    found.close()


def pid(connection):
    return connection.execute("SELECT pg_backend_pid()").fetchone()[0]


def test_pg_05_waits_that_are_given_up_lose_no_connection(connections):
    with connections.borrowed(1) as first:
        known = {pid(first)}
        for _ in range(pool.CONNECTIONS_MAX - 1):
            taken = connections._take(1)
            known.add(pid(taken))
            connections._give_back(taken)
    held = [connections._take(1) for _ in range(pool.CONNECTIONS_MAX)]
    for _ in range(CANCELLED // 2):
        with pytest.raises(relet.Unavailable) as told, connections.borrowed(0):
            pass
        assert told.value.code == "RELET-BUSY"
    for one in held:
        connections._give_back(one)
    assert (connections.open, len(connections._idle), len(connections._waiting)) == (10, 10, 0)


@pytest.mark.parametrize("served", [True, False])
def test_pg_05_a_wait_that_is_interrupted_gives_on_what_it_was_given(connections, monkeypatch, served):
    held = [connections._take(1) for _ in range(pool.CONNECTIONS_MAX)]

    def interrupted(waiter, _seconds):
        if served:
            connections._give_back(held.pop())
            assert waiter.is_served
        raise KeyboardInterrupt

    monkeypatch.setattr(Waiter, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt), connections.borrowed(1):
        pass
    for one in held:
        connections._give_back(one)
    assert (len(connections._idle), len(connections._waiting)) == (10, 0)


@pytest.mark.case("PG-05")
def test_asynchronous_calls_that_are_cancelled_leave_a_whole_client(database):
    async def cancel_them():
        async with await relet.connect_async(database) as db:
            calls = [asyncio.create_task(db.submit("work", n)) for n in range(CANCELLED)]
            await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert (await db.submit("work", "last")).created
            connections = db.blocking.backend.store.calls
            await asyncio.to_thread(eventually, lambda: len(connections._idle) == connections.open <= 10)

    asyncio.run(cancel_them())


def test_pg_05_a_hundred_share_ten_and_nobody_waits_for_long(connections):
    over = threading.Event()
    longest, served, troubles = [0.0] * WAITERS, [0] * WAITERS, []

    def share(number):
        while not over.is_set():
            began = time.monotonic()
            try:
                with connections.borrowed(5) as connection:
                    longest[number] = max(longest[number], time.monotonic() - began)
                    connection.execute("SELECT pg_sleep(0.002)")
            except relet.Error as wrong:
                troubles.append(wrong)
            served[number] += 1

    threads = [threading.Thread(target=share, args=(number,)) for number in range(WAITERS)]
    for thread in threads:
        thread.start()
    eventually(lambda: sum(served) >= TURNS * WAITERS)
    over.set()
    for thread in threads:
        thread.join(20)
    assert troubles == []
    assert connections.open <= pool.CONNECTIONS_MAX
    assert len(connections._idle) == connections.open
    assert max(longest) < 5
    assert min(served) > 0.3 * max(served), "in the order of coming"


def test_pg_05_a_pool_that_rested_for_a_day_opens_new_ones(connections, monkeypatch):
    with connections.borrowed(1) as connection:
        before = pid(connection)
    now = time.monotonic()
    monkeypatch.setattr(pool.time, "monotonic", lambda: now + DAY_S)
    taken = connections._take(1)
    taken.answer_by = None
    assert pid(taken) != before
    connections._give_back(taken)
    assert connections.open == 1


def test_those_that_rest_for_long_are_closed_by_the_use_of_others(connections, monkeypatch):
    held = [connections._take(1) for _ in range(4)]
    for one in held:
        connections._give_back(one)
    for one in held[:3]:
        one.idle_since -= DAY_S
    with connections.borrowed(1) as connection:
        assert connection is held[3]
    assert (connections.open, [one.closed for one in held]) == (1, [True, True, True, False])


def test_one_that_the_server_ended_is_not_given_out(connections, database):
    with connections.borrowed(1) as connection:
        before = pid(connection)
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [before])
        eventually(lambda: not connections._idle[-1].is_quiet)
    with connections.borrowed(1) as connection:
        assert pid(connection) != before


def test_a_closed_pool_gives_none_and_wakes_who_waits(database):
    connections = connections_of(database, most=1)
    gate, told = Gate(), []

    def wait():
        gate.set()
        try:
            with connections.borrowed(20):
                pass
        except relet.Unavailable as wrong:
            told.append(wrong.code)

    thread = threading.Thread(target=wait)
    with connections.borrowed(1) as held:
        thread.start()
        gate.pass_through()
        eventually(lambda: connections._waiting)
        connections.close()
        thread.join(10)
    assert held.closed
    assert told == ["RELET-CLOSED"]
    with pytest.raises(relet.Unavailable, match="closed"), connections.borrowed(1):
        pass


def test_a_server_that_is_not_there_is_told_at_once_and_takes_no_place():
    with PostgresServer(tcp=True) as server:
        connections = connections_of(server.tcp_url())
    for _ in range(2 * pool.CONNECTIONS_MAX):
        with pytest.raises(relet.Unavailable) as told, connections.borrowed(10):
            pass
        assert told.value.code == "RELET-UNREACHABLE"
    assert connections.open == 0


def test_a_server_that_falls_silent_is_given_up_in_time():
    with PostgresServer(tcp=True) as server, Proxy(server) as proxy:
        connections = connections_of(proxy.url())
        with connections.borrowed(0.5) as connection:
            proxy.black_hole()
            began = time.monotonic()
            with pytest.raises(psycopg.OperationalError, match="did not answer"):
                connection.execute("SELECT 1")
        assert time.monotonic() - began < 3
        assert connection.closed
        assert connections.open == 0
        proxy.pass_on()
        with connections.borrowed(1) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        connections.close()


def test_a_beat_that_is_not_answered_is_sent_again_before_the_lease_ends():
    """The connection of heartbeats hangs; another one is opened in time."""
    with PostgresServer(tcp=True) as server, Proxy(server) as proxy, relet.connect(proxy.url()) as db:
        task = db.submit("work")
        with db.claim("work", ttl=4) as lease:
            lease.renew()
            proxy.black_hole()
            eventually(lambda: lease.status == "doubtful")  # a beat was waited for in vain
            proxy.cut()
            proxy.pass_on()
            first = db.task(task.id).last_heartbeat
            eventually(lambda: db.task(task.id).last_heartbeat > first and lease.status == "held")
            lease.check()
            lease.complete()
        assert (db.task(task.id).state, db.task(task.id).attempt) == ("done", 1)


def test_a_closed_client_says_so_at_once(database):
    db = relet.connect(database)
    db.close()
    began = time.monotonic()
    with pytest.raises(relet.Unavailable, match="closed") as told:
        db.task("t")
    assert told.value.code == "RELET-CLOSED"
    assert time.monotonic() - began < 2, "no patience helps"


@pytest.mark.parametrize(
    ("wrong", "understood"),
    [
        (None, True), (psycopg.errors.InsufficientPrivilege(), True), (psycopg.errors.ReadOnlySqlTransaction(), True),
        (psycopg.errors.SyntaxError(), False), (psycopg.errors.FeatureNotSupported(), False),
    ],
)  # fmt: skip
def test_skipping_locked_rows_is_probed_by_doing_it(database, monkeypatch, wrong, understood):
    with connect(conninfo_of(database), "here") as connection:
        asked, real = [], connection.execute

        def execute(text, *args):
            asked.append(text)
            if wrong is not None and "SKIP LOCKED" in text:
                raise wrong
            return real(text, *args)

        monkeypatch.setattr(connection, "execute", execute)
        assert probe(connection).skip_locked is understood
        assert any("FOR UPDATE SKIP LOCKED" in text for text in asked)


def test_a_grant_is_told_though_a_step_of_the_clock_cannot_be_settled(database, monkeypatch):
    """The statement has committed: an error after it would have its caller claim a second task."""
    with relet.connect(database) as db:
        db.submit_many("q", [1, 2, 3])
        db.claim("q")
        store = db.backend.store
        monkeypatch.setattr(store.clock, "notice", lambda *_: False)
        monkeypatch.setattr(store, "settle", lambda _: pytest.fail("settled where nothing is judged"))
        monkeypatch.setattr(store.looks, "is_fresh", lambda *_: True)
        assert db.claim("q").input == 2
        assert len(db.tasks(state="leased")) == 2


def test_heartbeats_do_not_wait_for_the_feed_of_refusals(database):
    """Its counters are locked, and many are refused at the same time."""
    with relet.connect(database) as db, psycopg.connect(database) as other:
        db.submit_many("work", [1, 2])
        lost, held = db.claim("work", ttl=60), db.claim("work", ttl=60)
        lost.release()
        ask = Complete(completions=[Completion(handle=lost.belief.grant.handle, result=msgspec.Raw(b"1"))])
        db.backend.call(ask)
        held.renew()
        other.execute("SELECT 1 FROM relet.rejection_counts FOR UPDATE")
        with ThreadPoolExecutor(8) as threads:
            refused = [threads.submit(db.backend.call, ask) for _ in range(8)]
            eventually(lambda: waiting_for_a_lock(database))
            assert len(db.backend.store.beats._idle) == 1, "theirs rests"
            held.renew()
            other.rollback()
            for one in refused:
                one.result(20)


def waiting_for_a_lock(url):
    with psycopg.connect(url, autocommit=True) as looker:
        waits = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return looker.execute(waits).fetchone()[0]


def test_a_look_has_longer_than_a_write(database, monkeypatch):
    asked = []

    def expected(_line, seconds, *_):
        if threading.current_thread() is threading.main_thread():
            asked.append(seconds)

    monkeypatch.setattr(Line, "expect_answers", expected)
    with relet.connect(database) as db:
        asked.clear()
        db.submit("work", id="t")
        assert max(asked) <= tries.PATIENCE_MS / 1_000
        db.task("t")
        assert engine.READ_S - 1 < asked[-1] <= engine.READ_S
        db.backend.call(FindTask(task_id="t"), patience_ms=500)
        assert asked[-1] <= 0.5


def test_who_is_sent_away_by_the_end_gives_back_no_place(connections):
    held = [connections._take(1) for _ in range(pool.CONNECTIONS_MAX)]
    with ThreadPoolExecutor() as threads:
        waiters = [threads.submit(connections._take, 20) for _ in range(3)]
        eventually(lambda: len(connections._waiting) == len(waiters))
        connections.close()
        for waiter in waiters:
            with pytest.raises(relet.Unavailable, match="closed"):
                waiter.result(20)
    for one in held:
        connections._give_back(one)
    assert connections.open == 0
