"""The PostgreSQL engine keeps to the language that its relatives share, as far as that can be told without one."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2] / "src/relet/store/postgres"
MIGRATIONS = sorted((ENGINE / "migrations").glob("*.sql"))
LINT = Path(sys.executable).with_name("dsql-lint")
ACCEPTED = {
    "collation": "names compare by their bytes, whatever a database was made with; DSQL compares all text so",
    "index_async": "PostgreSQL has no such word, and no server that has it was here to try it on",
    "index_sort_direction": "larger priorities are claimed first; without it a claim would sort all that is ready",
}
"""What Aurora DSQL refuses of the schema, by the linter's rule, and why it is there all the same."""
UNSEEN = re.compile(
    r"\b(REFERENCES|FOREIGN KEY|EXCLUDE USING|LANGUAGE|SAVEPOINT|TEMP|TEMPORARY|TRIGGER|CURRENT_TIMESTAMP)\b"
    r"|_advisory_|\bnow\(\)",
    re.IGNORECASE,
)
"""What the linter does not see in a schema, or is not shown: statements with parameters are none that it can read."""
COMMENT = re.compile(r"--[^\n]*")


def linted(*files):
    """What there is to say, by rule."""
    done = subprocess.run([LINT, "--format", "json", *files], capture_output=True, text=True, check=False)
    found = {}
    for file in json.loads(done.stdout)["files"]:
        for one in file["diagnostics"]:
            found.setdefault(one["rule"], []).append((one["line"], one["message"]))
    return found


def unseen(text):
    return [match[0] for match in UNSEEN.finditer(COMMENT.sub("", text))]


def test_the_linter_of_a_relative_finds_nothing_but_what_was_weighed():
    assert MIGRATIONS
    found = linted(*MIGRATIONS)
    assert {rule: where for rule, where in found.items() if rule not in ACCEPTED} == {}
    assert found.keys() == ACCEPTED.keys(), "what is not there any more need not be accepted"


def test_no_other_order_than_that_of_bytes_is_asked_for():
    orders = {order for file in MIGRATIONS for order in re.findall(r'COLLATE ("?\w+"?)', file.read_text())}
    assert orders == {'"C"'}


@pytest.mark.parametrize("file", sorted(ENGINE.rglob("*.sql")), ids=lambda file: file.name)
def test_no_statement_has_what_the_relatives_do_without(file):
    assert unseen(file.read_text()) == []


def test_what_a_relative_refuses_is_seen(tmp_path):
    (tmp_path / "0002_more.sql").write_text(
        "CREATE TEMP TABLE a (n integer);\nCREATE SEQUENCE s CACHE 20;\nTRUNCATE b;\n"
        "CREATE TRIGGER t AFTER INSERT ON b FOR EACH ROW EXECUTE FUNCTION f();\n"
    )
    assert linted(tmp_path / "0002_more.sql").keys() == {
        "temp_table", "sequence_cache", "truncate", "unsupported_create_trigger",
    }  # fmt: skip
    assert unseen("a REFERENCES b -- SAVEPOINT\n; SELECT pg_advisory_lock(1), now(), clock_timestamp()") == [
        "REFERENCES", "_advisory_", "now()",
    ]  # fmt: skip
