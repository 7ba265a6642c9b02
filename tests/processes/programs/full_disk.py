"""Work on a store until its disk is full, and once there is room again: full_disk.py FOLDER; tells what it saw.

The folder is a small file system of its own, with the store, its artifacts and the marks of its tokens on it.
"""

import json
import os
import sys
from pathlib import Path

import relet
from relet.core import limits
from relet.core.errors import Error

folder = Path(sys.argv[1])
os.environ["RELET_STATE_DIR"] = str(folder / "state")
BALLAST = folder / "ballast"
LARGE = "x" * 200_000
limits.TOKEN_BLOCK = 1  # so that each claim needs the file of marks, too


def outcome(verb, *arguments):
    try:
        verb(*arguments)
    except Error as refused:
        return refused.code
    return "ok"


def fill():
    with BALLAST.open("ab", buffering=0) as file:
        for size in (65_536, 512, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass


def until_full(verb):
    """What a verb says at last: there may be room left in files that are there already."""
    said = [outcome(verb) for _ in range(30)]
    return [said[-1], sorted(set(said))]


told = {}
with relet.connect(f"sqlite:///{folder}/work.db") as db:
    db.submit_many("q", list(range(100)))
    lease = db.claim("q", ttl=600)
    lease.save("before")
    fill()
    told["save"] = until_full(lambda: lease.save(LARGE))
    told["submit"] = until_full(lambda: db.submit("q", LARGE))
    told["claim"] = until_full(lambda: db.claim("q", ttl=600))
    told["attach"] = until_full(lambda: lease.attach("page", LARGE.encode()))
    told["backup"] = outcome(db.backup, folder / "backup.db")
    told["renew"] = outcome(lease.renew)
    told["status"] = str(lease.status)
    told["read"] = db.task(lease.task_id).state
    told["verify_full"] = [one.text for one in db.verify().findings]
    BALLAST.unlink()
    told["again"] = [outcome(lease.renew), outcome(lease.save, LARGE), outcome(lease.attach, "page", LARGE.encode())]
    told["claim_again"] = db.claim("q") is not None
    lease.complete("done")
    told["result"] = db.result(lease.task_id)
    told["verify"] = [one.text for one in db.verify().findings]
    told["left"] = sorted(path.name for path in folder.iterdir() if "part" in path.name)
sys.stdout.write(json.dumps(told) + "\n")
