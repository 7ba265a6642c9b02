"""Requests made from the OpenAPI document, fitting and unfitting, and whether each answer is one that it tells of."""

import asyncio
import re

import msgspec
import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.openapi.checks import RejectedPositiveData

from relet.core.access import Role
from relet.core.backend import Request
from relet.core.catalog import OPERATIONS
from relet.core.whoami import PATIENCE
from relet.server.openapi import document
from tests.server.served import Served
from tests.server.wire import Wire
from tests.server.world import World

pytestmark = pytest.mark.slow
EXAMPLES = 2
"""Of each operation, beside those at the bounds of every field, which are some fifty of each."""
BUSY = "RELET-BUSY"
REQUESTS = {f"/v1/{one.name}": one.request for one in OPERATIONS}
# What no schema says of a request that fits it, and a refusal does. Nothing else of this kind is let through.
BEYOND_SCHEMAS = (
    # JSON is any JSON, but for what one engine or another cannot keep.
    re.compile(r"which no store keeps|is beyond 64 bits|is nested deeper than"),
    # The grammar of durations is shown; that a minute is the most of them is told in words.
    re.compile(r"^wait: .* is outside "),
    # The generator makes names for a query one character longer than `maxLength` says, and takes them for good ones.
    re.compile(r"\(201 characters\) is not (a name|an id) of 1 to 200 characters"),
    # The path is the digest of the body.
    re.compile(r"^sha256: the body is of other bytes"),
)


def findings(url, key, *, examples=EXAMPLES, seed=1):
    """Every answer that is other than the document says, in words; and how many operations were asked."""
    config = SchemathesisConfig.from_dict({
        "seed": seed, "base-url": url, "headers": {"Authorization": f"Bearer {key}"}, "continue-on-failure": True,
        "request-timeout": 20,
        "generation": {"max-examples": examples, "deterministic": True, "database": "none", "no-shrink": True},
        "phases": {"stateful": {"enabled": False}},
        "checks": {
            # A lease that is gone, bytes that a fence refuses, what a task's state stands against: of the request
            # nothing is wrong.
            "positive_data_acceptance": {
                "expected-statuses": ["2xx", "401", "403", "404", "409", "410", "412", "422", "429"]
            },
        },
    })  # fmt: skip
    schema = schemathesis.openapi.from_dict(document(), config=config)
    schema.hook(filter_failure)
    labels, found = set(), []
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            found.append(str(getattr(event, "value", event)))
        if isinstance(event, events.ScenarioFinished):
            labels.add(event.label)
            found += told(event.recorder)
    return labels, found


def told(recorder):
    for case, checks in recorder.checks.items():
        for check in checks:
            if (info := check.failure_info) is not None:
                wrong = info.failure
                said = recorder.find_response(case_id=wrong.case_id or case)
                answer = "nothing" if said is None else f"{said.status_code} {said.content[:1_000]!r}"
                yield f"{recorder.label}: {check.name}: {wrong.title}: {wrong.message}\n{info.code_sample}\n{answer}"


def filter_failure(context, failure, case, response):
    """Is it one of relet's, and not of what schemas cannot say."""
    if response.status_code == 503 and response.json()["code"] == BUSY and PATIENCE in response.request.headers:
        return False  # there was no patience, or none to speak of
    if not isinstance(failure, RejectedPositiveData) or response.status_code != 400:
        return True
    detail = response.json()["detail"]
    if any(known.search(detail) for known in BEYOND_SCHEMAS):
        return False
    asked, body = REQUESTS.get(case.path), response.request.body
    if asked is None or has_fraction(body, asked):
        return asked is None
    return not at_odds(msgspec.json.decode(body, type=asked))


def has_fraction(body, asked):
    """JSON Schema calls 49.0 an integer; relet takes a whole number as everybody writes it, without a fraction."""
    try:
        msgspec.json.decode(body, type=asked)
    except msgspec.ValidationError as wrong:
        return str(wrong).startswith("Expected `int") and "got `float`" in str(wrong)
    return False


def at_odds(value):
    """Do fields of it, each of which fits, not go together."""
    if isinstance(value, Request) and value.at_odds() is not None:
        return True
    inner = value.__struct_fields__ if isinstance(value, msgspec.Struct) else ()
    return any(at_odds(getattr(value, name)) for name in inner)


def briefly(served):
    """The application, of whose streams only what comes first is waited for: they do not end by themselves."""

    async def answer(scope, receive, send):
        gone, said = asyncio.Event(), False
        streams = scope["path"] in ("/v1/news", "/v1/changes/stream")

        async def heard():
            if not streams:
                return await receive()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def told(message):
            nonlocal said
            if streams and message.get("body"):
                if said:
                    return
                said = True
                message = {**message, "more_body": False}
                gone.set()
            await send(message)

        # Wrong keys are shown on purpose, and all of them from one address.
        served.app_forgets_failures()
        await served.app(scope, heard, told)

    return answer


@pytest.fixture(scope="module", params=[Role.ADMIN, Role.VIEWER], ids=str)
def asked(request, tmp_path_factory):
    """Where the service listens, over a store that has one of everything; and the key that it is asked with."""
    served, wire = Served(tmp_path_factory.mktemp("served"), hosts=["127.0.0.1"]), Wire()
    World(served, "a")
    wire.app = briefly(served)
    yield wire.url, served.key(request.param)
    wire.close()
    served.close()


def test_each_answer_to_what_fits_and_what_does_not_is_one_that_the_document_tells_of(asked):
    labels, found = findings(*asked)
    assert labels == {f"{method.upper()} {path}" for path, ways in document()["paths"].items() for method in ways}
    assert not found, "\n\n".join(found)
