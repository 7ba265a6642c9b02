"""A holder lets go before the store gives its task away: over delays, losses, drift, suspends and silence."""

import random

import pytest

from relet.client.blocking import Client
from relet.core.errors import OutcomeUnknown, Unavailable
from relet.testing import Clock, store
from tests.client.line import Line

PPM = 500
SCHEDULES = 40
STEPS = 60


class Drifting:
    """The holder's reading of the one true time: at a rate of its own, and never stepped."""

    def __init__(self, clock, ppm):
        self._clock, self._rate = clock, 1 + ppm / 1e6
        self.wall_ms, self.wait, self.suspended_ms = clock.wall_ms, clock.wait, clock.suspended_ms

    def fast_ms(self):
        return self._clock.fast_ms() * self._rate


class Slow(Line):
    """Requests and answers that take their time; some are lost on either way."""

    def __init__(self, inner, clock, chance):
        super().__init__(inner)
        self._clock, self._chance = clock, chance

    def call(self, ask, *, patience_ms=None):
        self._clock.advance(self._chance.choice([0, 0, 0.01, 0.3, 2]))
        if self._chance.random() < 0.15:
            raise Unavailable("lost on the way there")
        answer = super().call(ask, patience_ms=patience_ms)
        self._clock.advance(self._chance.choice([0, 0, 0.01, 0.3, 2]))
        if self._chance.random() < 0.15:
            raise OutcomeUnknown("lost on the way back")
        return answer


def is_trusted(lease):
    return lease.status != "lost"


@pytest.mark.parametrize("first", range(0, 200, SCHEDULES))
def test_p6_whenever_a_holder_trusts_its_lease_the_store_still_keeps_it(first):
    renewed = let_go = 0
    for seed in range(first, first + SCHEDULES):
        chance, clock = random.Random(seed), Clock()
        with store(clock=clock) as db:
            line = Slow(db.backend, clock, chance)
            holder = Client(line, clock=Drifting(clock, chance.choice([-PPM, 0, PPM])))
            task = db.submit("q", ttl=chance.choice([1, 5, 60]))
            # Asked for at the instant of the claim: what its answer takes is the holder's own loss.
            sent_ms = holder.clock.fast_ms()
            (grant,) = db.backend.call(claim_of(task.id))
            clock.advance(chance.choice([0, 0.2]))
            (lease,) = holder.leases_of([grant], sent_ms)
            for _ in range(STEPS):
                if chance.random() < 0.05:
                    clock.suspend(chance.uniform(0, 2 * lease.ttl))
                else:
                    clock.advance(chance.uniform(0, lease.ttl / 4))
                if is_trusted(lease):
                    assert db.task(task.id).live, f"seed {seed}: trusted when the store may give it away"
                if chance.random() < 0.8:
                    before = lease.belief.trust.renewed_ms
                    holder.keeper.tend([lease.belief])
                    renewed += lease.belief.trust.renewed_ms > before
                    if is_trusted(lease):
                        assert db.task(task.id).live, f"seed {seed}: trusted after a beat that came late"
                if not is_trusted(lease):
                    let_go += 1
                    break
    assert renewed > SCHEDULES
    assert let_go > SCHEDULES / 4


def claim_of(task_id):
    from relet.client import asks

    return asks.claim(None, "holder", task=task_id)


def test_ec_11_a_suspended_holder_knows_before_its_first_write_that_it_has_lost():
    clock = Clock()
    with store(clock=clock) as db:
        task = db.submit("q", ttl="60s")
        lease = db.claim(task_id=task.id)
        clock.suspend("10m")
        assert lease.status == "lost"
        assert db.task(task.id).live, "the store's own clock stood still: nobody is ahead of the holder"


def test_h3_a_short_suspend_is_doubted_and_confirmed_before_the_next_step():
    clock = Clock()
    with store(clock=clock) as db:
        lease = db.claim(task_id=db.submit("q", ttl="60s").id)
        clock.suspend("10s")
        assert lease.belief.is_doubtful()
        lease.check()
        assert (lease.status, lease.belief.trust.renewed_ms) == ("held", clock.fast_ms())


def test_a_check_in_doubt_waits_for_an_answer_no_longer_than_the_lease_is_trusted():
    with store() as db:
        patience, call = [], db.backend.call

        def lost(ask, *, patience_ms=None):
            patience.append(patience_ms)
            raise Unavailable("no answer in that time")

        db.submit("q", ttl="60s")
        lease = db.claim("q")
        db.backend.call = lost
        db.clock.advance("45s")
        with pytest.raises(Unavailable):
            lease.renew()
        assert lease.status == "doubtful"
        patience.clear()
        db.clock.advance("5s")
        with pytest.raises(Unavailable):
            lease.check()
        assert patience == [60_000 - 50_000 - 3_000], "of the ttl, what is gone and the margin of a holder"
        db.backend.call = call
