"""A task over many retries, and times over every zone: what was counted and kept stays as it is."""

import time
from datetime import UTC, datetime, timedelta

import pytest

DAYS = 30
BEFORE_SUMMER_TIME = datetime(2027, 3, 13, 12, tzinfo=UTC)
"""In America/Los_Angeles the clocks go forward within the day after it."""


def test_rd_09_a_month_of_hourly_retries_loses_no_count_no_date_and_no_receipt(db, clock):
    submitted = db.submit("q", id="t", max_attempts=1_000)
    calls = []
    for attempt in range(1, DAYS * 24 + 1):
        lease = db.claim("q")
        assert lease.attempt == attempt
        with lease.run() as run:
            assert run.effect("mail", {"to": "a"}, lambda payload, _effect: calls.append(payload) or "sent") == "sent"
            lease.fail("not yet", delay="1h")
        clock.advance("72m")
        db.sweep()
    task = db.task("t")
    assert (task.state, task.failures, task.attempt) == ("ready", DAYS * 24, DAYS * 24 + 1)
    assert task.created_at == submitted.created_at
    assert clock.wall_ms() / 1_000 - task.created_at.timestamp() == DAYS * 24 * 72 * 60
    (effect,) = db.effects()
    assert (effect.receipt, effect.tries, len(calls)) == ("sent", 1, 1)


@pytest.fixture
def zone(monkeypatch):
    def set_to(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_to
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_ec_12_times_are_the_same_in_every_zone_over_the_change_to_summer_time(db, clock, zone, name):
    zone(name)
    clock.step(BEFORE_SUMMER_TIME.timestamp() - clock.wall_ms() / 1_000)
    # As a user there writes it; midnight in California is before the change, the noon that follows is after it.
    local = (BEFORE_SUMMER_TIME + timedelta(days=1, hours=7)).astimezone()
    task = db.submit("q", id="t", at=local)
    elsewhere = db.submit("elsewhere", at=local.astimezone(UTC))
    assert task.due_at == elsewhere.due_at == BEFORE_SUMMER_TIME + timedelta(days=1, hours=7)
    clock.advance("30h")
    assert db.claim("q") is None
    clock.advance("1h")
    lease = db.claim("q", ttl="90m")
    assert db.task("t").expires_at == BEFORE_SUMMER_TIME + timedelta(hours=32, minutes=30)
    ended = lease.fail("no", delay="2h")
    due = db.task("t").due_at
    assert due == BEFORE_SUMMER_TIME + timedelta(hours=31, milliseconds=ended.delay_ms)
    assert due.tzinfo is UTC
