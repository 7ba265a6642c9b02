"""Figures of a database: the same statements as a file's, at one instant."""

import pytest

from relet.core.rules.measure import Measure
from relet.testing import Clock
from relet.testing.stores import open_store

pytestmark = pytest.mark.postgres


def test_figures_of_a_database_are_those_of_its_tasks(database, tmp_path):
    clock = Clock()
    with open_store(tmp_path, clock, url=database) as db:
        db.submit_many("q", range(3))
        db.submit("paused", 1)
        db.queue("paused", paused=True)
        with db.claim("q", ttl=2).run() as run, pytest.raises(ZeroDivisionError):
            run.effect("pay", 1, lambda *_: 1 / 0)
        clock.advance(1)
        db.claim("q", ttl=2)
        clock.advance(5)
        found = db.backend.call(Measure())
    figures = {queue.queue: queue for queue in found.stats.queues}
    assert (figures["q"].lapsed, figures["q"].live, figures["paused"].ready) == (1, 0, 1)
    assert (found.ready_ms["q"], "paused" in found.ready_ms) == (6_000, False)
    assert (found.lapsed.expired_ms_ago, found.unknown.count) == (3_000, 1)
    assert found.unknown.age_ms == 6_000
