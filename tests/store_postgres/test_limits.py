"""Names as long as they may be, of the largest letters, fit into every index: a row of one has 2700 bytes."""

import contextlib
import random

import psycopg
import pytest

import relet
from relet.core import limits

pytestmark = pytest.mark.postgres
NUMBERS = random.Random(1)


def largest(chars=limits.NAME_CHARS_MAX):
    """In four bytes each, and in no order that could be made shorter."""
    return "".join(chr(NUMBERS.randrange(0x20000, 0x2A000)) for _ in range(chars))


def test_names_of_the_largest_size_are_taken_by_every_verb(database):
    queue, kind, task_id, holder = (largest() for _ in range(4))
    with relet.connect(database, tenant=largest(), holder=holder) as db:
        db.queue(queue, concurrency=5, share_concurrency=3, retention="1h")
        names = {"kind": kind, "share": largest(), "exclusive": largest(), "labels": {largest(): largest()}}
        db.submit(queue, 1, id=task_id, priority=limits.PRIORITY_MAX, **names)
        db.submit_many(queue, [1, 2], ids=[largest(), largest()], **names)
        db.submit(largest(), 1, kind=largest(), delay="5m")
        lease = db.claim(queue, kinds=[kind], request_id=largest())
        name = largest()
        lease.save({"a": 1}, name)
        lease.attach(name, b"bytes")
        with contextlib.suppress(relet.Parked), lease.run() as run:
            run.step(name, dict, key=largest())
            run.submit(largest(), queue, 1)
            run.effect(
                name, {"n": 1}, lambda payload, effect: 1, contract=relet.Keyed(retention="24h"), key=largest()
            )
            run.effect(largest(), {"n": 1}, lambda payload, effect: 1, contract=relet.Opaque())
            run.approval(name, ask={"page": 1}, timeout="1h")
        db.signal(task_id, largest(), 1)
        db.decide(task_id, name, "accept", by=largest())
        db.claim(task_id=task_id).complete()
        lease = db.claim(queue)
        lease.complete()
        with pytest.raises(relet.Refused):
            lease.fail("too late")
        db.claim(queue).fail(largest(), retry=False, code=largest(64))
        with psycopg.connect(database) as connection:
            connection.execute("UPDATE relet.tasks SET updated_wall_ms = 0")
        assert db.prune("1m").count
        assert db.backend.verify().findings == []
