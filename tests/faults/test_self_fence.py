"""The same with a real process that is stopped at random: its last good check comes before the store's lapse."""

import random
import signal
import time
from pathlib import Path

from tests.processes.freezing import freeze

PROGRAM = Path(__file__).parents[1] / "processes" / "programs" / "checking.py"


def test_p6_a_stopped_holders_last_good_check_is_before_the_lapse(db, start, url):
    chance = random.Random(6)
    for _ in range(8):
        task = db.submit("q", ttl="1s")
        program = start(PROGRAM, url, task.id)
        program.line()
        lease = None
        while lease is None:
            freeze(program, db)
            time.sleep(chance.uniform(0.1, 1.6))
            lease = db.claim(task_id=task.id, ttl="60s")
            program.send(signal.SIGCONT)
            time.sleep(chance.uniform(0, 0.4))
            lease = lease or db.claim(task_id=task.id, ttl="60s")
        last_good_ms = float(program.rest()[-1])
        lapsed = next(event for event in db.history(task.id) if event.kind == "lapsed")
        wall_to_mono_ms = time.time() * 1e3 - time.monotonic() * 1e3
        expired_ms = lapsed.at.timestamp() * 1e3 - wall_to_mono_ms - lapsed.detail["expired_ms_ago"]
        assert last_good_ms < expired_ms + 2, "both are read in milliseconds"
        lease.complete()
