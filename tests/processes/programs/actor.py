"""Does the verbs that it reads from its input. PLACE is the URL of a store, or a folder with a steered clock.

With a URL in DATABASE, or one of a service in SERVICE, the store of that clock is there, and not in the folder.
"""

import json
import sys
import time

import relet
from tests.processes.steering import opened

VERBS_OF_THE_CLIENT = ("cancel", "requeue", "sweep")


def connect(place):
    if "://" in place:
        return relet.connect(place, holder="actor")
    return opened(place, "actor")


class Desk:
    def __init__(self, db):
        self.db = db
        self.lease = None

    def claim(self, queue=None, **options):
        self.lease = self.db.claim(queue, **options)
        if self.lease is None:
            return None
        return {"id": self.lease.task_id, "token": self.lease.token, "attempt": self.lease.attempt}

    def do(self, verb, arguments, named):
        if verb == "claim":
            return self.claim(*arguments, **named)
        if verb == "submit":
            queue, payload, task_id = arguments
            return str(self.db.submit(queue, payload, id=task_id, **named).state)
        if verb in VERBS_OF_THE_CLIENT:
            answer = getattr(self.db, verb)(*arguments, **named)
            return answer if isinstance(answer, int) else str(answer.state)
        if verb == "advance":
            return self.db.clock.advance(*arguments)
        answer = getattr(self.lease, verb)(*arguments, **named)
        return str(answer.state) if hasattr(answer, "state") else answer


def answer(desk, ask):
    while time.monotonic_ns() < ask["at"]:
        pass
    try:
        return desk.do(ask["verb"], ask["arguments"], ask["named"])
    except relet.Error as refused:
        reason = refused.detail.get("reason")
        return {"error": type(refused).__name__, "reason": reason, "code": refused.code}


def main():
    desk = Desk(connect(sys.argv[1]))
    sys.stdout.write("ready\n")
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(desk, json.loads(line))) + "\n")


main()
