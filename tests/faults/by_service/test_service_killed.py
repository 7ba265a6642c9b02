"""The service is killed around a commit, before anybody is told: who asks again is answered as if nothing were."""

import pytest

import relet
from relet.client.blocking import Client
from relet.client.http.backend import HttpBackend
from relet.core.access import Role
from tests.cut_connection import Proxy
from tests.processes.actor import PROGRAMS
from tests.processes.service import ServiceProcess
from tests.processes.whole import is_whole

pytestmark = pytest.mark.faults
KILLED = -9
REQUEST = "r-1"


class Holder:
    """Somebody at the service, who does a verb and asks again as long as nobody says what became of it."""

    def __init__(self, client):
        self._client = client
        self.lease = None

    def submit(self):
        return self._client.submit("work", {"n": 1}, id="t")

    def claim(self):
        self.lease = self._client.claim("work", request_id=REQUEST)

    def save(self):
        self.lease.save("half")

    def complete(self):
        self.lease.complete("all")

    def fail(self):
        self.lease.fail("no", retry=False)

    def release(self):
        self.lease.release()


OFTEN = ("claim", "complete")
PATHS = {
    "submit": ("submit",), "claim": ("submit", "claim"), "save": ("submit", "claim", "save"),
    "complete": ("submit", "claim", "complete"), "fail": ("submit", "claim", "fail"),
    "release": ("submit", "claim", "release"),
}  # fmt: skip
KINDS = {"submit": "submitted", "claim": "claimed", "save": "saved", "complete": "completed", "fail": "failed",
         "release": "released"}  # fmt: skip


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=() if verb in OFTEN else pytest.mark.long) for verb in PATHS]
)
def test_each_verb_of_which_nobody_knows_is_done_once_when_it_is_asked_again(db, start, when, verb):
    service = ServiceProcess(start, db, before=[PROGRAMS / "faulty.py"], environment={"FAULT": f"{when}:{verb}:1"})
    with Proxy(service) as proxy:
        backend = HttpBackend(f"http://127.0.0.1:{proxy.port}", key=service.key(Role.ADMIN))
        with Client(backend, holder="A") as client:
            holder = Holder(client)
            *before, last = PATHS[verb]
            for each in before:
                getattr(holder, each)()
            with pytest.raises(relet.OutcomeUnknown):
                getattr(holder, last)()
            assert service.program.wait() == KILLED
            assert is_whole(db)
            kinds = [KINDS[each] for each in PATHS[verb]]
            assert told(db) == (kinds if when == "after" else kinds[:-1])
            service.begin()
            getattr(holder, last)()
            # A second call that saves is a second save; the others end something, or make it.
            assert told(db) == kinds + ["saved"] * (verb == "save" and when == "after")
            assert (db.task("t").attempt, db.task("t").losses) == (1 + (verb == "fail"), 0)
            assert verb == "submit" or holder.lease.token == db.task("t").token
            assert is_whole(db)
    assert service.end() == 0


def told(db):
    return [str(event.kind) for task in db.tasks() for event in db.history(task.id)]


def test_a_service_that_is_begun_anew_gives_each_lease_a_whole_ttl(db, start):
    """Nobody could renew meanwhile: the holder goes on under its token, and nobody was let in."""
    service = ServiceProcess(start, db)
    with Proxy(service) as proxy:
        backend = HttpBackend(f"http://127.0.0.1:{proxy.port}", key=service.key(Role.WORKER))
        with Client(backend, holder="A") as client:
            task = db.submit("work", ttl="3s")
            lease = client.claim("work")
            service.kill()
            with pytest.raises(relet.Unavailable):
                client.task(task.id)
            left_s = (db.task(task.id).expires_at - db.task(task.id).updated_at).total_seconds()
            service.begin()
            assert service.is_ready()
            assert (db.task(task.id).expires_at - db.task(task.id).updated_at).total_seconds() > left_s
            assert db.claim("work") is None
            assert lease.renew() > 2.5
            lease.complete("done")
    assert (db.task(task.id).attempt, db.task(task.id).losses) == (1, 0)
    assert is_whole(db)
