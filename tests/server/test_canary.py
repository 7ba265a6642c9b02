"""Secrets put wherever a program has them are in nothing that people read: logs, errors, pages, figures, spans.

Advisory 22 (Airflow CVE-2022-27949, CVE-2023-40712, CVE-2020-17511). What programs get stays.
"""

import io
import json
import logging

import msgspec
import pytest

import relet
from relet.cli.main import run
from relet.cli.session import Session
from relet.client.redacting import RedactingFormatter
from relet.core.access import Role
from relet.core.errors import Conflict
from relet.core.redaction import REDACTED, SECRETS
from relet.core.rules.audit import ListAudit
from relet.core.rules.cancel import Cancel
from relet.integrations.otel import instrument
from tests.spans import keep_spans

REGISTERED = "c4n4ry-registered/+&\"'x"
FROM_ENV = "c4n4ry-of-the-environment"
UNKNOWN = "c4n4ry-0123456789-nobody-knows"
"""Only its place says what it is: a name, a header, a URL."""
MARK = "c4n4ry"
INPUT = {
    "password": UNKNOWN, "nested": [{"apiKey": UNKNOWN, "X-Auth-Token": UNKNOWN}], "said": f"it is {REGISTERED}",
    "url": f"postgresql://me:{UNKNOWN}@db/work", "cookie": {"sid": UNKNOWN}, "plain": "grain",
}  # fmt: skip
TEXTS = (
    f"401 for https://api.example/v1?api_key={UNKNOWN}&n=1", f"headers {{'Authorization': 'Bearer {UNKNOWN}'}}",
    f"Authorization: Bearer {UNKNOWN}", f"Authorization: Basic {UNKNOWN}==", f"postgresql://me:{UNKNOWN}@db/work",
    f'{{"client_secret": "{UNKNOWN}"}}', f"Cookie: sid={UNKNOWN}; b={UNKNOWN}", f"PGPASSWORD={UNKNOWN} psql",
    f"it said {REGISTERED}", repr({"x": REGISTERED}), json.dumps([REGISTERED]), f"{FROM_ENV} was refused",
)  # fmt: skip


@pytest.fixture(autouse=True)
def known():
    SECRETS.forget()
    SECRETS.watch({"SOME_API_KEY": FROM_ENV})
    relet.redact(REGISTERED)
    yield
    SECRETS.forget()


@pytest.fixture
def printed():
    """What a program prints that set up its logging by itself, and what our own lines are."""
    outs = [io.StringIO(), io.StringIO()]
    handlers = [logging.StreamHandler(out) for out in outs]
    handlers[0].setFormatter(logging.Formatter("%(message)s %(exc_info)s", validate=False))
    handlers[1].setFormatter(RedactingFormatter("%(message)s"))
    loggers = [logging.getLogger("relet"), logging.getLogger("mine")]
    loggers[0].addHandler(handlers[0])
    loggers[1].addHandler(handlers[1])
    for log in loggers:
        log.setLevel(logging.DEBUG)
    yield lambda: "".join(out.getvalue() for out in outs)
    for log, handler in zip(loggers, handlers, strict=True):
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)


@pytest.fixture
def got(served, printed, monkeypatch):
    """Each way in which an attempt can end has happened with secrets in it; what handlers and spans were given."""
    spans, inputs, app = keep_spans(monkeypatch), [], relet.App()

    @app.task("work")
    def work(run, said, **rest):
        inputs.append({"said": said, **rest})
        run.attach(f"{FROM_ENV}.txt", b"x")
        run.progress(f"with {REGISTERED}")
        run.step("look", lambda: {"secret": UNKNOWN})
        logging.getLogger("mine").error("about %s", REGISTERED, exc_info=RuntimeError(TEXTS[0]))
        text = TEXTS[rest["n"]]
        raise (relet.Permanent(text) if rest["n"] % 2 else RuntimeError(text))

    @app.task("asking")
    def asking(run):
        run.approval("publish", ask=INPUT)

    instrument(app)
    for n in range(len(TEXTS)):
        served.db.submit("work", {**INPUT, "n": n}, id=f"t-{n}", max_attempts=1)
    served.db.submit("asking", {}, id="a-1")
    app.run_until_idle(served.db)
    return inputs, spans


def test_no_page_no_line_no_figure_and_no_span_tells_one(served, got, printed, capsys, caplog):
    inputs, spans = got
    key = served.key(Role.ADMIN, name="ann")
    pages = [cli(served, capsys, *args) for args in (
        ("ls",), ("show", "t-0"), ("show", "t-7"), ("show", "t-8"), ("history", "t-0"), ("history", "t-8"),
        ("waits",),
        ("watch", "--after", "0", "--limit", "40"), ("rejections",), ("effects",), ("steps", "t-0", "--values"),
        ("show", REGISTERED), ("show", "a-1"),
    )]  # fmt: skip
    assert "RELET-NOT-FOUND" in pages[-2] and all(pages)
    told = [
        served.call(Cancel(task_id=REGISTERED, reason="r"), key), served.ask("GET", f"/v1/{FROM_ENV}", key=UNKNOWN),
        served.ask("GET", f"/v1/tasks?token={UNKNOWN}", key=key), served.ask("GET", "/metrics", key=key),
    ]  # fmt: skip
    served.loop.run_until_complete(served.written())
    rows = repr(served.backend.operate(ListAudit()))
    lines = repr([(one.getMessage(), one.exc_text) for one in caplog.records if one.name.startswith("relet")])
    refused = msgspec.json.decode(told[0].body)
    assert refused["facts"].pop("task_id") == REGISTERED, "an id is data, and the asker's own"
    answered = repr(refused) + "".join(reply.body.decode() for reply in told[1:])
    for said in (*pages, printed(), lines, rows, answered, *(spoken(span) for span in spans)):
        assert MARK not in said
    assert len(inputs) == len(spans) - 1 == len(TEXTS)


def spoken(span):
    return repr((span.name, span.attributes, span.said, span.raised and str(span.raised)))


def test_what_is_kept_of_an_error_has_none_and_what_programs_get_is_the_data_itself(served, got, capsys):
    inputs, _ = got
    assert inputs[0] == {**INPUT, "n": 0}
    for n in range(len(TEXTS)):
        task = served.db.task(f"t-{n}")
        assert REDACTED in task.error and MARK not in task.error + str(task.progress)
        assert task.input == {**INPUT, "n": n}
        assert MARK not in repr([event.detail for event in served.db.history(task.id) if event.kind == "failed"])
    assert json.loads(cli(served, capsys, "show", "t-0", "--json"))["task"]["input"] == {**INPUT, "n": 0}


def test_a_person_can_ask_for_all_of_it(served, got, capsys):
    assert UNKNOWN in cli(served, capsys, "show", "t-0", "--reveal")
    page = cli(served, capsys, "show", "t-0")
    assert f'"password":"{REDACTED}"' in page and "token" in page


def test_an_error_in_json_keeps_what_programs_compare(served, capsys):
    relet.redact("RELET-NOT-FOUND", "task_id")
    told = json.loads(cli(served, capsys, "show", REGISTERED, "--json"))
    assert (told["code"], told["detail"]["field"], told["detail"]["task_id"]) == (
        "RELET-NOT-FOUND", "task_id", REGISTERED,
    )  # fmt: skip
    assert MARK not in told["message"]


def cli(served, capsys, *args):
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patched:
        for way in ("client", "existing"):
            patched.setattr(Session, way, lambda _: served.db)  # in its own process, where its clock is
        run([*args])
    out, err = capsys.readouterr()
    return out + err


def test_an_error_of_ours_that_quotes_one_is_answered_without_it(served):
    from relet.server.answers import problem

    body = problem(Conflict(f"it is {REGISTERED}", engine=REGISTERED)).body.decode()
    assert MARK not in body
    assert body.count(REDACTED) == 2
