"""TRUST P13: whichever write or sync of a verb fails, the verb has happened or it has not; nothing is half done."""

import shutil
from itertools import count

import apsw
import msgspec
import pytest

from relet.core.errors import OutcomeUnknown, Unavailable
from relet.core.rules.end_effect import EndEffect
from relet.core.rules.start_effect import StartEffect
from relet.core.rules.step import KeepStep
from relet.core.work import Contract, ContractKind, Outcome
from relet.testing import Clock
from relet.testing.stores import open_store
from tests.store.disk import failing_disk
from tests.store.inside import contents

RAW = msgspec.Raw(b'{"to":"site"}')
LARGE = "x" * 6_000
TASKS = ("held", "started", "unknown", "old")
NTH_MAX = 200


def start(db, lease, name):
    return db.backend.call(StartEffect(
        handle=lease.belief.grant.handle, name=name, payload=RAW, contract=Contract(kind=ContractKind.OPAQUE),
        timeout_ms=1_000, call_id=name,
    ))  # fmt: skip


def end(db, lease, effect_id):
    db.backend.call(EndEffect(
        handle=lease.belief.grant.handle, effect_id=effect_id, attempt=1, outcome=Outcome.APPLIED, receipt=RAW,
    ))  # fmt: skip


def step(db, lease):
    db.backend.call(KeepStep(handle=lease.belief.grant.handle, name="search", slot="#1", value=RAW))


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A store in a state from which every verb leads on: its folder, handles by task, effects by name."""
    folder = tmp_path_factory.mktemp("image")
    with open_store(folder, Clock()) as db:
        leases = {}
        for name in TASKS:
            db.submit("q", LARGE, id=name)
            leases[name] = db.claim(task_id=name, ttl=3_600)
        effects = {"started": start(db, leases["started"], "a").id, "unknown": start(db, leases["unknown"], "b").id}
        leases["unknown"].release()
        leases["old"].complete()
        for name in ("waiting", "listening"):
            db.submit("q", id=name)
            db.claim(task_id=name).park("go", kind="approval" if name == "waiting" else "signal")
        db.submit("q", id="dead")
        db.claim(task_id="dead").fail("no", retry=False)
        db.submit("q", id="lapsed")
        db.claim(task_id="lapsed", ttl=1)
        db.submit_many("q", [LARGE, LARGE], ids=["ready", "more"])
        return folder, {name: lease.handle for name, lease in leases.items()}, effects


VERBS = {
    "submit": lambda db, lease, effects: db.submit_many("q", [LARGE, LARGE], ids=["new-1", "new-2"]),
    "claim": lambda db, lease, effects: db.claim(task_id="ready", request_id="r"),
    "claim_many": lambda db, lease, effects: db.claim_many("q", 2, request_id="r"),
    "renew": lambda db, lease, effects: lease("held").renew(),
    "save": lambda db, lease, effects: lease("held").save(LARGE),
    "step": lambda db, lease, effects: step(db, lease("held")),
    "progress": lambda db, lease, effects: lease("held").progress("half"),
    "complete": lambda db, lease, effects: lease("held").complete(LARGE),
    "fail": lambda db, lease, effects: lease("held").fail("no"),
    "release": lambda db, lease, effects: lease("held").release(),
    "park": lambda db, lease, effects: lease("held").park("go"),
    "start_effect": lambda db, lease, effects: start(db, lease("held"), "c"),
    "end_effect": lambda db, lease, effects: end(db, lease("started"), effects["started"]),
    "decide": lambda db, lease, effects: db.decide("waiting", "go", "accept"),
    "signal": lambda db, lease, effects: db.signal("listening", "go", LARGE),
    "reconcile": lambda db, lease, effects: db.reconcile(effects["unknown"], "applied"),
    "cancel": lambda db, lease, effects: db.cancel("ready"),
    "cancel_many": lambda db, lease, effects: db.cancel_many(queue="q"),
    "requeue": lambda db, lease, effects: db.requeue("dead"),
    "sweep": lambda db, lease, effects: db.sweep(),
    "prune": lambda db, lease, effects: db.prune("1m"),
    "queue": lambda db, lease, effects: db.queue("q", paused=True),
}
"""Each repeats in peace what it may have done already, but for `signal` and `requeue`."""
ONCE = {"signal", "requeue"}
ERRORS = {"write": apsw.FullError("no room"), "sync": apsw.IOError("the disk went away")}


def from_the_nth_on(what, n, error):
    """Fails the n-th time that this is done, and each time after it: what is repeated does not get through either."""
    left = count(1)
    return lambda done: error if done == what and next(left) >= n else None


@pytest.mark.parametrize("what", ERRORS)
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_whose_nth_write_or_sync_fails_has_happened_or_it_has_not(image, tmp_path, name, what):
    source, handles, effects = image
    outcomes = []
    for n in range(1, NTH_MAX):
        folder = tmp_path / str(n)
        shutil.copytree(source, folder)
        clock = Clock()
        clock.advance("2m")
        with failing_disk() as disk, open_store(folder, clock) as db:
            before = contents(folder)

            def verb():
                return VERBS[name](db, lambda task: db.lease(handles[task]), effects)

            disk.fails = from_the_nth_on(what, n, ERRORS[what])
            try:
                verb()
                failed = None
            except (Unavailable, OutcomeUnknown) as error:
                failed = error
            disk.fails = None
            after = contents(folder)
            assert db.verify().findings == []
            if isinstance(failed, Unavailable):
                assert failed.code == ("RELET-FULL" if what == "write" else "RELET-IO")
                assert after == before, "an answer that says nothing was written"
            if not isinstance(failed, OutcomeUnknown) or name not in ONCE:
                if failed is not None:
                    verb()
                assert contents(folder) != before
            assert db.verify().findings == []
        shutil.rmtree(folder)
        if failed is None:
            break
        outcomes.append(type(failed))
    assert outcomes or (name == "renew" and what == "sync"), "nothing has failed"
    assert len(outcomes) < NTH_MAX - 2
    if what == "write":
        assert OutcomeUnknown not in outcomes
