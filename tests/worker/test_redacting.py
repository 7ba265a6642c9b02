"""Lines of relet's own loggers are without secrets wherever they go, and are otherwise as they were."""

import io
import logging
import re
from pathlib import Path

import pytest

import relet
from relet.client.redacting import Redacting, log_named
from relet.core.redaction import REDACTED, SECRETS
from relet.worker.main import line_handler

SOURCE = Path(relet.__file__).parent
CANARY = "c4n4ry-1"


@pytest.fixture(autouse=True)
def known():
    SECRETS.forget()
    relet.redact(CANARY)
    yield
    SECRETS.forget()


def test_every_logger_of_relet_is_one_that_keeps_secrets():
    bare = re.compile(r"""getLogger\(["']relet\.|getLogger\(__name__\)""")
    assert [path.name for path in SOURCE.rglob("*.py") if bare.search(path.read_text(encoding="utf-8"))] == []


def test_a_line_says_once_whose_lease_it_is_about_also_where_something_left_it(relet_db):
    out, app, log = io.StringIO(), relet.App(), logging.getLogger("relet")
    handler = line_handler(out)
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    @app.task("work")
    def work(run):
        raise relet.Permanent(f"with {CANARY}")

    work.submit(relet_db)
    try:
        app.run_until_idle(relet_db)
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    lines = [line for line in out.getvalue().splitlines() if REDACTED in line]
    assert len(lines) == 2
    assert {line.count("(task=") for line in lines} == {1}


def test_what_holds_nothing_secret_passes_as_it_is():
    record = logging.LogRecord("relet.x", logging.INFO, __file__, 1, "%s and %d", ("one", 2), None)
    assert Redacting().filter(record)
    assert (record.msg, record.args) == ("%s and %d", ("one", 2))


@pytest.mark.parametrize(("text", "stays"), [(CANARY, False), ("plain", True)])
def test_an_error_with_one_goes_on_as_text_and_any_other_as_itself(text, stays):
    wrong = ValueError(text)
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "m", (), (ValueError, wrong, None), sinfo=text)
    assert Redacting().filter(record)
    assert (record.exc_info is not None) is stays
    assert CANARY not in str((record.exc_text, record.stack_info))
    assert (record.exc_text or "").startswith("ValueError: ") is not stays


class Unreadable:
    def __str__(self):
        raise RuntimeError(CANARY)

    __repr__ = __str__


@pytest.mark.parametrize(("text", "args"), [
    (f"{CANARY} %d", (CANARY,)), ("%d %s", (1, CANARY, 2.5)), ("%(n)d", ({"n": CANARY},)), ("%s", (Unreadable(),)),
    ("%d %s", (CANARY, Unreadable())), ("%s %s", ([CANARY],)), (Unreadable(), ()), ("%d", None),
])  # fmt: skip
def test_a_line_that_was_logged_wrongly_is_its_handlers_business_without_what_is_secret(text, args, capsys):
    wrong = ValueError(CANARY)
    record = logging.LogRecord("x", logging.INFO, __file__, 1, text, args, (ValueError, wrong, None))
    assert Redacting().filter(record)
    logging.StreamHandler(io.StringIO()).handle(record)
    assert CANARY not in capsys.readouterr().err + str((record.msg, record.args, record.exc_text))


def test_a_line_that_was_logged_wrongly_is_still_told_of(capsys):
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "%d and %s", (CANARY, 7), None)
    Redacting().filter(record)
    logging.StreamHandler(io.StringIO()).handle(record)
    told = capsys.readouterr().err
    assert "--- Logging error ---" in told and "%d and %s" in told and REDACTED in told and record.args[1] == 7


def test_a_logger_that_is_asked_for_again_has_the_filter_once():
    assert log_named("relet.worker") is log_named("relet.worker")
    assert [type(one) for one in logging.getLogger("relet.worker").filters].count(Redacting) == 1
