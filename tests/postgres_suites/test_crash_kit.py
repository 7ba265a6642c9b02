"""The crash kit over a database: faults at each call, and what is left judged as it is over files."""

import contextlib
import shlex

import psycopg
import pytest

from relet.cli.main import run
from relet.store.postgres.connect import WITHOUT
from relet.store.postgres.passing import nobody_within, passing_schema
from relet.testing import CrashTestFailed, crash_test
from relet.testing.crash import report
from tests.crash.conftest import programs
from tests.postgres_suites.test_demo import schemas

pytestmark = pytest.mark.postgres

__all__ = ["programs"]


def test_one_fault_of_each_kind_in_one_run_after_the_other(url):
    import good

    said = crash_test(
        good.app, good.short, {"topic": "grain"}, seed=3, points="all", runs=8, verify=good.sent_once,
        same_result=True, jobs=2, url=url,
    )  # fmt: skip
    assert said.ok
    assert said.commits == ["claim", "keep_step search", "save main", "start_effect mail", "end_effect", "complete"]
    assert said.struck >= 8
    assert schemas(url) == 0


def test_waits_answers_and_several_faults_in_one_run(url):
    import good

    said = crash_test(
        "good:app", "long", {"topic": "grain"}, point="freeze-before:3,kill-after:5,drop:9,freeze-at:1ms",
        answers={"publish": "accept"}, signals={"go": 1}, verify=good.sent_once, same_result=True, seed=1, url=url,
    )  # fmt: skip
    assert said.struck == 4


@pytest.mark.parametrize(
    ("kind", "options", "rule", "point"),
    [
        ("catches_everything", {"same_result": True}, "same_result", "drop:2"),
        ("saves", {"wrap": "stores:forgetful"}, "checkpoints_monotone", None),
    ],
)
def test_a_mistake_is_found_and_the_printed_command_finds_it_again(url, kind, options, rule, point, capsys):
    how = {"point": point} if point else {"points": "commits"}
    with pytest.raises(CrashTestFailed) as failed:
        crash_test("broken:app", kind, seed=7, url=url, **how, **options)
    finding = failed.value.report.findings[0]
    assert finding.rule == rule
    program, *words = shlex.split(finding.command)
    assert program == "relet"
    assert run(words) == 8
    assert f"FAIL  {finding.point}  {rule}: " in capsys.readouterr().out


def test_a_process_that_is_frozen_within_a_transaction_is_frozen_elsewhere(url):
    words = ["crashtest", "broken:app", "locks", "--point", "freeze-at:100ms", "--limit", "20s", "--url", url]
    assert run(words) == 0


def test_holders_do_without_what_the_user_forbids_and_know_no_store_of_theirs(url, monkeypatch):
    import good

    monkeypatch.setenv(WITHOUT, "listen")
    monkeypatch.setenv("RELET_TENANT", "mine")

    def heard(db, task, folder):
        assert WITHOUT in task.result
        assert "RELET_TENANT" not in task.result

    assert crash_test(good.app, good.settings, None, point="drop:1", verify=heard, url=url).ok


def test_who_is_within_a_transaction_of_the_schema_is_seen(url):
    with passing_schema(url, "relet_crash") as schema, contextlib.ExitStack() as opened:
        within = opened.enter_context(psycopg.connect(url))
        within.execute(f"CREATE SCHEMA {schema}")
        within.execute(f"CREATE TABLE {schema}.tasks (n int)")
        within.commit()
        assert nobody_within(url, schema)
        within.execute(f"INSERT INTO {schema}.tasks VALUES (1)")
        assert not nobody_within(url, schema)
        within.rollback()
        assert nobody_within(url, schema)
    assert schemas(url) == 0


@pytest.mark.parametrize("given", ["postgresql://ann:word@host/db", "postgresql://ann@host/db?password=word&port=1"])
def test_a_password_is_not_in_the_command_that_repeats_a_run(given):
    shown = report._without_password(given)
    assert "word" not in shown
    assert shown.startswith("postgresql://ann@host/db")
