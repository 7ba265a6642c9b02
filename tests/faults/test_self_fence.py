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
        while lease is None and program.process.poll() is None:
            freeze(program, db)
            time.sleep(chance.uniform(0.1, 1.6))
            lease = db.claim(task_id=task.id, ttl="60s")
            program.send(signal.SIGCONT)
            time.sleep(chance.uniform(0, 0.4))
            lease = lease or db.claim(task_id=task.id, ttl="60s")
        # Woken between its own deadline and the store's it ends before anybody may have the task.
        lease = lease or db.claim(task_id=task.id, ttl="60s", wait=5)
        last_good_ms = float(program.rest()[-1])
        ended = next(event for event in db.history(task.id) if event.kind in ("lapsed", "released"))
        wall_to_mono_ms = time.time() * 1e3 - time.monotonic() * 1e3
        over_ms = ended.at.timestamp() * 1e3 - wall_to_mono_ms - ended.detail.get("expired_ms_ago", 0)
        assert last_good_ms < over_ms + 2, "both are read in milliseconds"
        lease.complete()
