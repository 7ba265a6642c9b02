"""The same sequences by way of two services over one store; answers are lost and requests come twice on the way."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from relet.artifacts.service import ServiceArtifacts
from relet.core.access import SCOPES_OF, Access, Role
from relet.core.catalog import OPERATIONS
from relet.core.whoami import PREFIX
from relet.server.app import application
from relet.server.service import Service
from relet.testing.stores import SteeredClient, open_store
from tests.conformance.over_http import TwoKeys
from tests.model.test_machine import CLIENTS, SEEN, Machine, explore
from tests.server.wire import Wire

pytestmark = pytest.mark.slow

EXAMPLES = max(25, settings.default.max_examples // 4)
QUICK = settings(
    max_examples=EXAMPLES, stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
LOST, TWICE = "lost", "twice"
SEEN_AT_LEAST = {
    *((verb, how) for verb in ("renew", "save", "complete", "claim_task") for how in ("accepted", "refused")),
    *(("on the way", fate) for fate in (LOST, TWICE)),
}
REPEATED = {f"{PREFIX}/{one.name}" for one in OPERATIONS if one.writes and one.replay_safe}


class Ring:
    """Whoever shows a text is who has that key, and may do everything."""

    async def who(self, key):
        return Access(
            key_id=key, name=key, tenant="default", role=Role.ADMIN, scopes=SCOPES_OF[Role.ADMIN], queues=None
        )


class Way:
    """A service behind something that loses answers and sends requests again, each once when it is told to."""

    def __init__(self):
        self.wire = Wire()
        self.wire.app = self._answer
        self.fate = self.home = None

    def begin(self, home):
        """A new service over a store that is opened anew; the one before has ended."""
        self.home, self.fate = home, None
        self._service = Service(home.backend, lambda: home.files.place)
        self._app = application(self._service, Ring(), hosts=[self.wire.host], version="0")

    def end(self):
        self._service.close()
        self.home.close()

    async def _answer(self, scope, receive, send):
        if self.fate is None or scope["path"] not in REPEATED:
            return await self._app(scope, receive, send)
        fate, self.fate = self.fate, None
        SEEN["on the way", fate] += 1
        body = b""
        while (message := await receive()).get("more_body", False):
            body += message["body"]
        body += message.get("body", b"")
        await self._app(scope, told(body), nobody)
        # A claim without a request id is known again where its client says so, which nobody on the way does.
        if fate == TWICE and (b'"queues"' not in body or b'"request_id":"' in body):
            return await self._app(scope, told(body), send)
        await send({"type": "http.response.start", "status": 502, "headers": [(b"content-length", b"0")]})
        return await send({"type": "http.response.body", "body": b""})


def told(body):
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def nobody(message):
    """The answer gets to nobody."""


@pytest.fixture
def by_service():
    ways = [Way() for _ in range(2)]

    class ByService(Machine):
        """Each client is at a service of its own."""

        def __init__(self):
            self._next = iter(ways)
            super().__init__()

        def opened(self):
            way = next(self._next)
            way.begin(open_store(self.folder.name, self.clock))
            backend = TwoKeys(way.wire.url, "worker", "person")
            place = ServiceArtifacts(backend.line)
            client = SteeredClient(backend, clock=self.clock, files=lambda: place)
            self.clock.on_move(client.keeper.poke)
            return client

        @rule(who=CLIENTS)
        def crash(self, who):
            """A service ends, its client too, and both begin again."""
            ways[who].end()
            self._next = iter([ways[who]])
            super().crash(who)

        @rule(who=CLIENTS, fate=st.sampled_from([LOST, LOST, TWICE]))
        def disturb(self, who, fate):
            """The next request that may be repeated is obeyed, and its answer lost; or it comes twice."""
            ways[who].fate = fate

        def verified(self):
            return ways[0].home.verify().findings

        def teardown(self):
            try:
                super().teardown()
            finally:
                for way in ways:
                    way.end()

    yield ByService
    for way in ways:
        way.wire.close()


def test_no_sequence_by_way_of_services_breaks_a_promise(by_service, request):
    explore(by_service, QUICK, SEEN_AT_LEAST, request.config.option.hypothesis_seed)
