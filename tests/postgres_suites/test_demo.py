"""`relet demo --url postgresql://…`: each line holds, and nothing of it is left in the database."""

import json
import subprocess
import sys

import psycopg
import pytest

from tests.processes.program import ROOT

pytestmark = pytest.mark.postgres

COMMAND = "from relet.cli.entry import main; main()"
SCHEMAS = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'relet%'"


def demo(url):
    return subprocess.run(
        [sys.executable, "-c", COMMAND, "demo", "--json", "--url", url], capture_output=True, text=True, cwd=ROOT,
        stdin=subprocess.DEVNULL, timeout=120, check=False,
    )  # fmt: skip


def schemas(url):
    with psycopg.connect(url) as connection:
        return connection.execute(SCHEMAS).fetchone()[0]


def test_the_demo_holds_in_a_database_and_leaves_nothing_there(url):
    done = demo(url)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["ok"] for line in lines)
    assert [line["orders"] for line in lines if "orders" in line] == [1]
    assert schemas(url) == 0
    with psycopg.connect(url) as next_of_the_pool:
        assert next_of_the_pool.execute("SHOW client_min_messages").fetchone() == ("notice",)


def test_a_database_that_is_not_there_is_named(url):
    done = demo(url.replace("test_", "no_such_"))
    assert done.returncode != 0
    assert "does not exist" in done.stderr
