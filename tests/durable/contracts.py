"""The contracts that an effect may have, for tests that hold under several."""

import relet

DAY = "24h"
REPEATABLE = [relet.Keyed(retention=DAY), relet.Natural(), relet.Conditional()]
ALL = [*REPEATABLE, relet.Queryable(lambda payload, effect: None), relet.Opaque()]


def named(contract):
    return str(contract.kind)


def state_of(db):
    (effect,) = db.effects()
    return str(effect.state)
