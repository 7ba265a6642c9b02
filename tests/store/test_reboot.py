"""A new boot, another machine, another time namespace: what a store makes of the clock that it is opened on."""

import pytest

from relet.core.errors import Unavailable
from relet.core.model import Cause, State
from relet.store.sqlite.clock import Boot, SystemClock
from relet.testing import Clock
from tests.store.inside import ask, contents

MINUTE_MS = 60_000


def rebooted(**boot):
    """The clock of the next run of the same machine: monotonic time begins anew, the wall clock does not."""
    clock = Clock(boot="next")
    clock.boot = clock.boot._replace(**boot)
    clock.advance("3d")
    return clock


def left_s(db, name):
    task = db.task(name)
    return round((task.expires_at.timestamp() * 1_000 - db.clock.wall_ms()) / 1_000)


@pytest.fixture
def before(connect, clock):
    """What was granted before the machine went down: tokens and handles by task."""
    with connect(clock) as db:
        for name, ttl in [("done", 60), ("lapsed", 1), ("live", 60), ("expired", 20), ("capped", 60)]:
            db.submit("q", name, id=name, ttl=ttl, max_hold=30 if name == "capped" else None)
        db.submit("q", "later", id="later", delay=600)
        leases = {name: db.claim(task_id=name) for name in ("done", "lapsed", "live", "expired", "capped")}
        leases["done"].complete(1)
        clock.advance(1)
        db.sweep()
        clock.advance(24)
        leases["live"].renew()
        return {
            "tokens": {name: lease.token for name, lease in leases.items()},
            "handles": {name: lease.handle for name, lease in leases.items()},
        }


def test_after_a_reboot_whatever_is_not_recorded_as_ended_is_live_for_a_ttl_from_now(connect, before):
    db = connect(rebooted())
    assert {name: db.task(name).state for name in before["tokens"]} == {
        "done": State.DONE, "lapsed": State.READY, "live": State.LEASED, "expired": State.LEASED,
        "capped": State.LEASED,
    }  # fmt: skip
    assert all(db.task(name).live for name in ("live", "expired", "capped"))
    assert {name: left_s(db, name) for name in ("live", "expired", "capped")} == {
        "live": 60, "expired": 20, "capped": 60,
    }  # fmt: skip


def test_the_time_that_the_machine_was_off_counts_as_none(connect, before):
    db = connect(rebooted())
    assert db.claim(task_id="live") is None
    db.lease(before["handles"]["live"]).renew()
    db.clock.advance(59)
    assert db.task("live").live
    db.clock.advance(1)
    assert not db.task("live").live


def test_store_time_goes_on_from_the_last_reading_that_was_committed(connect, before, tmp_path):
    (last,) = ask(tmp_path, "SELECT max(max(at_ms), (SELECT max(beat_ms) FROM leases)) FROM events")
    assert last == (25_000,), "the renewal, which left no event"
    db = connect(rebooted())
    assert ask(tmp_path, "SELECT store_base_ms FROM meta") == [last]
    db.submit("q", 1)
    times = [row[0] for row in ask(tmp_path, "SELECT at_ms FROM events ORDER BY seq")]
    assert times == sorted(times)
    assert times[-1] == 25_000


def test_a_deadline_is_no_reading_and_moves_no_clock(connect, clock, tmp_path):
    with connect(clock) as db:
        db.submit("q", 1, ttl=3_600)
        db.claim("q")
    connect(rebooted())
    assert ask(tmp_path, "SELECT store_base_ms FROM meta") == [(0,)]


def test_delays_go_on_where_they_were(connect, before):
    db = connect(rebooted())
    assert db.claim(task_id="later") is None
    db.clock.advance(574)
    assert db.claim(task_id="later") is None
    db.clock.advance(1)
    assert db.claim(task_id="later") is not None


def test_an_outage_is_recorded_once(connect, before, tmp_path):
    connect(rebooted())
    connect(rebooted())
    rows = ask(tmp_path, "SELECT task_seq, detail FROM events WHERE kind = ?", Cause.OUTAGE)
    assert rows == [(None, '{"why":"new boot"}')]


def test_a_second_outage_is_another_one(connect, before, tmp_path):
    connect(rebooted())
    connect(rebooted(boot_id="third"))
    assert len(ask(tmp_path, "SELECT 1 FROM events WHERE kind = ?", Cause.OUTAGE)) == 2


def test_a_loss_within_an_outage_is_not_counted(connect, before):
    db = connect(rebooted())
    db.lease(before["handles"]["live"]).renew()
    db.clock.advance(60)
    db.sweep()
    assert (db.task("expired").losses, db.task("expired").state) == (0, State.READY)
    assert db.task("live").losses == 1, "its holder was heard again, and fell silent after that"


def test_after_an_outage_under_a_crowd_nothing_is_lost_given_up_or_counted(connect, clock):
    """400 leases, each of which may lapse but once, and a queue whose places they have all taken."""
    n = 400
    with connect(clock) as db:
        db.queue("crowd", concurrency=n)
        db.submit_many("crowd", [None] * n, max_losses=1, max_attempts=1, ttl=60)
        db.submit("crowd", id="next")
        assert len(db.claim_many("crowd", n)) == n
        clock.advance(59)
    db = connect(rebooted())
    assert db.claim("crowd") is None, "they are live for a ttl from now, and keep their places"
    db.clock.advance(59)
    assert db.sweep() == 0
    db.clock.advance(1)
    for _ in range(12):
        leases = db.claim_many("crowd", 1_000)
        assert {(db.task(lease.task_id).losses, lease.attempt) for lease in leases} <= {(0, 1)}
        db.complete_many([(lease, 1) for lease in leases])
        db.clock.advance(1)
    assert db.stats("crowd").queues[0].done == n + 1


def test_tokens_go_on_after_a_reboot(connect, before):
    db = connect(rebooted())
    assert db.claim("q").token > max(before["tokens"].values())


def test_on_the_same_boot_a_store_that_was_closed_was_never_down(connect, clock, tmp_path):
    with connect(clock) as db:
        db.submit("q", 1, id="t", ttl=60)
        db.claim("q")
    clock.advance(60)
    db = connect(clock)
    assert not db.task("t").live
    assert ask(tmp_path, "SELECT 1 FROM events WHERE kind = ?", Cause.OUTAGE) == []


REFUSED = [
    ({"machine_id": "another"}, "RELET-MOVED", "was last used on another machine .* relet adopt"),
    ({"machine_id": ""}, "RELET-MOVED", "was last used on another machine"),
    ({"boot_id": "steered", "time_namespace": "7"}, "RELET-TIME-NAMESPACE", "was opened in another time namespace"),
]


@pytest.mark.parametrize(("boot", "code", "problem"), REFUSED, ids=["machine", "unknown-machine", "time-namespace"])
def test_a_clock_that_cannot_be_compared_is_refused_and_nothing_is_changed(
    connect, before, tmp_path, boot, code, problem
):
    kept = ask(tmp_path, "SELECT * FROM meta"), contents(tmp_path)
    with pytest.raises(Unavailable, match=problem) as refused:
        connect(rebooted(**boot))
    assert refused.value.code == code
    assert (ask(tmp_path, "SELECT * FROM meta"), contents(tmp_path)) == kept


def test_a_store_made_where_machines_have_no_id_is_not_taken_over_by_another_boot(connect, clock):
    clock.boot = clock.boot._replace(machine_id="")
    connect(clock).close()
    with pytest.raises(Unavailable, match="was last used on another machine") as refused:
        connect(rebooted(machine_id=""))
    assert refused.value.code == "RELET-MOVED"


def test_after_a_reboot_the_time_namespace_may_be_another(connect, before):
    assert connect(rebooted(time_namespace="7")).task("live").live


def test_other_containers_of_the_same_boot_may_have_another_machine_id(connect, before):
    clock = Clock()
    clock.boot = Boot("steered", "", "container")
    assert connect(clock).task("done").state is State.DONE


def test_without_a_boot_id_store_time_never_goes_back(connect, tmp_path):
    """Where the platform does not tell one boot from another, monotonic time is the wall's."""
    first, second = Clock(boot=""), Clock(boot="")
    first.advance(100)
    with connect(first) as db:
        db.submit("q", 1, id="t", ttl=60)
        first.advance(5)
        db.claim("q")
    times = ask(tmp_path, "SELECT at_ms FROM events ORDER BY seq")
    db = connect(second)
    db.submit("q", 2)
    assert ask(tmp_path, "SELECT at_ms FROM events ORDER BY seq")[-1] >= times[-1]
    assert db.task("t").live


def test_the_clock_of_this_machine_knows_its_boot_and_counts_on():
    clock = SystemClock()
    assert clock.boot == SystemClock().boot
    first = clock.mono_ms()
    assert 0 <= clock.mono_ms() - first < MINUTE_MS
    assert abs(clock.wall_ms() - SystemClock().wall_ms()) < MINUTE_MS


def test_a_step_of_the_wall_clock_moves_no_lease(db):
    db.submit("q", 1, id="t", ttl=60)
    db.claim("q")
    for seconds in (86_400, -3 * 86_400):
        db.clock.step(seconds)
        assert db.task("t").live
        assert db.claim(task_id="t") is None
        assert left_s(db, "t") == 60
