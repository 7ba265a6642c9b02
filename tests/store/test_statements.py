"""The statements file is exact, every statement compiles, and the hot ones use the index that they name."""

import ast
import json
import re
from importlib.resources import files
from itertools import count
from pathlib import Path

import pytest

from relet.core import limits
from relet.core.rules.inspect_work import Referenced
from relet.store import sql
from relet.store.sql import LISTED, STATEMENTS
from relet.store.sql_bonds import BOND_STATEMENTS
from relet.store.sql_figures import FIGURES_STATEMENTS
from relet.store.sql_keys import KEY_STATEMENTS
from relet.store.sql_prune import PRUNE_STATEMENTS
from relet.store.sql_turns import TURN_STATEMENTS
from relet.store.sql_waiting import WAITING_STATEMENTS
from relet.store.sql_work import WORK_STATEMENTS
from relet.store.sqlite.runner import PREPARED, SQL
from relet.store.statements import load
from tests.store.inside import lane

FILES = (
    "statements.sql", "rows.sql", "work.sql", "figures.sql", "waiting.sql", "turns.sql", "prune.sql", "bonds.sql",
    "keys.sql",
)  # fmt: skip
TEXT = "\n".join(files("relet.store.sqlite").joinpath(name).read_text(encoding="utf-8") for name in FILES)
BLOCKS = dict(re.findall(r"^-- name: (\w+)\n((?:.+\n)*)", TEXT, re.MULTILINE))
COMMENTS = {
    name: "".join(line for line in block.splitlines() if line.startswith("--")) for name, block in BLOCKS.items()
}
NUMBERS = count()
TABLES = (
    "tasks", "inputs", "leases", "events", "rejections", "checkpoints", "steps", "waits", "signals", "artifacts",
    "effects", "evidence", "results", "places",
    "api_keys", "api_audit",
)  # fmt: skip
EVERY = (
    STATEMENTS
    | WORK_STATEMENTS
    | FIGURES_STATEMENTS
    | WAITING_STATEMENTS
    | TURN_STATEMENTS
    | PRUNE_STATEMENTS
    | BOND_STATEMENTS
    | KEY_STATEMENTS
)
HOT = {
    "lock_task": "tasks_id",
    "lock_ready": "tasks_ready",
    "lock_ready_of": "tasks_ready",
    "lock_due": "tasks_due",
    "lock_due_wall": "tasks_due_wall",
    "lock_overdue": "tasks_deadline",
    "lock_to_check": "leases_open",
    "lock_exclusive": "leases_exclusive",
    "find_waiting": "tasks_ready",
    "find_stirred": "tasks_ready",
    "find_next_lapse": "leases_open",
    "lock_requested": "leases_request",
    "find_task": "tasks_id",
    "find_tasks_leased": "leases_open",
    "find_tasks_ready": "tasks_ready",
    "count_ready_few": "tasks_ready",
    "find_tasks_set_aside": "tasks_set_aside",
    "find_task_events": "tasks_id",
    "look_ahead": "tasks_ready",
    "extend_all_open": "leases_open",
    "find_seq": "tasks_id",
    "find_artifacts": "artifacts_name",
    "find_artifact": "artifacts_name",
    "lock_question": "waits_question",
    "lock_last_wait": "waits_question",
    "lock_due_waits": "tasks_unanswered",
    "lock_reconciling": "waits_reconciling",
    "find_task_waits": "waits_question",
    "find_open_waits": "tasks_set_aside",
    "find_decisions": "waits_question",
    "lock_signal": "signals_kept",
    "find_signal": "signals_call",
    "count_signals": "signals_kept",
    "lock_effect": "effects_id",
    "lock_started": "effects_task",
    "find_open_effects": "effects_task",
    "find_effects_unsettled": "effects_unsettled",
    "find_effect": "effects_id",
    "lock_evidence": "evidence_effect",
    "find_referenced": "artifacts_digest",
    "count_ready": "tasks_ready",
    "count_delayed": "tasks_due",
    "count_leased": "leases_open",
    "count_set_aside": "tasks_set_aside",
    "count_reconciling": "waits_reconciling",
    "find_lapsed": "leases_open",
    "find_quiet": "leases_open",
    "find_ready_kinds": "tasks_ready",
    "find_busy": "leases_open",
    "find_unknown": "effects_unsettled",
    "find_stalled": "tasks_set_aside",
    "find_unanswered": "tasks_unanswered",
    "find_dead": "tasks_set_aside",
    "lock_turns": "tasks_share",
    "lock_before_shares": "tasks_ready",
    "fill_places": "leases_open",
    "count_leased_of": "leases_open",
    "find_api_key_named": "api_keys_names",
    "find_audit_of": "api_audit_tenant",
    "find_audit_after_of": "api_audit_tenant",
}
"""In the order of the files."""
IN_ORDER = {
    "lock_ready", "lock_ready_of", "lock_due", "lock_due_wall", "lock_overdue", "lock_to_check", "lock_due_waits",
    "lock_signal", "find_artifact", "find_kept", "find_steps", "find_tasks", "lock_matching",
    "lock_turns", "lock_before_shares", "find_api_keys", "find_audit", "find_audit_of",
    "find_audit_after", "find_audit_after_of",
}  # fmt: skip
BY_KEY = {
    "lock_lease", "lock_leases", "lock_called", "lease_by_token", "task_by_seq", "update_task", "take_task",
    "complete_task", "link_event",
    "extend_lease", "extend_leases", "look_run", "extend_run", "postpone_check",
    "end_lease", "mark_cancelling", "find_input", "find_checkpoint", "find_queue",
    "lock_step", "find_kept", "find_step", "find_steps", "find_saving", "find_checkpoints", "lock_wait",
    "update_wait", "take_signal", "update_effect", "find_tasks", "lock_matching",
    "note_turn", "clear_places", "count_places", "drop_places", "count_live_places",
    "find_api_keys_of", "find_api_keys", "revoke_api_key", "note_use", "move_audit_end", "find_audit",
    "find_audit_after", "remove_audit",
}  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a statements file into a package of its own; loads it."""
    name = f"queries_{next(NUMBERS)}"  # Python remembers a package by its name
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    def loaded(text, wanted):
        (tmp_path / name / "s.sql").write_text(text)
        return load(name, "s.sql", wanted)

    return loaded


def test_statements_are_found_by_name_without_their_comments(package):
    text = "-- about the file\n\n-- name: one\n-- why\nSELECT 1;\n\n-- name: two\nSELECT\n    2\n"
    loaded = package(text, ["one", "two"])
    assert {name: statement.split() for name, statement in loaded.items()} == {
        "one": ["SELECT", "1"],
        "two": ["SELECT", "2"],
    }


def test_no_statement_keeps_a_comment_or_a_second_statement():
    """A comment within a line would swallow the rest of the statement, once its lines are joined."""
    assert [name for name, statement in SQL.items() if "--" in statement or ";" in statement] == []


def test_sq_01_whatever_writes_begins_as_a_writer():
    """A transaction that begins as a reader is refused at once when it turns to writing, whatever the timeout."""
    begins = [
        (path.name, node.value.strip())
        for path in sorted(Path(sql.__file__).with_name("sqlite").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("BEGIN")
    ]
    assert {begin for _, begin in begins} == {"BEGIN IMMEDIATE", "BEGIN IMMEDIATE;", "BEGIN EXCLUSIVE", "BEGIN"}
    readers = [place for place, begin in begins if begin == "BEGIN"]
    assert readers == ["copy_out.py", "runner.py", "verify.py"], "those who only read"


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("-- name: one\nSELECT 1\n", r"\['two'\]"),
        ("-- name: one\nSELECT 1\n-- name: two\nSELECT 2\n-- name: three\nSELECT 3\n", r"\['three'\]"),
        ("-- name: one\nSELECT 1\n-- name: two\nSELECT 2\n-- name: one\nSELECT 3\n", r"\['one', 'one', 'two'\]"),
        ("", r"\['one', 'two'\]"),
    ],
    ids=["missing", "extra", "repeated", "empty"],
)
def test_a_name_that_is_missing_extra_or_repeated_fails_at_load(package, text, odd):
    with pytest.raises(LookupError, match=rf"queries_\d+/s.sql: .* {odd}"):
        package(text, ["one", "two"])


def test_every_statement_has_a_user():
    code = "".join(path.read_text(encoding="utf-8") for path in Path(sql.__file__).parent.rglob("*.py"))
    code = re.sub(r"STATEMENTS: Final = frozenset\(.*?\n?\)", "", code, flags=re.DOTALL)
    assert [name for name in sorted(EVERY) if f'"{name}"' not in code] == []


@pytest.mark.parametrize("name", sorted(EVERY))
def test_every_statement_compiles_against_the_schema(db, name):
    lane(db).connection().execute(f"EXPLAIN {SQL[name]}", blanks(name)).fetchall()


def blanks(name):
    return dict.fromkeys(re.findall(r":(\w+)", SQL[name]))


def plan(db, name):
    rows = lane(db).connection().execute(f"EXPLAIN QUERY PLAN {SQL[name]}", blanks(name)).fetchall()
    return [row[3] for row in rows]


@pytest.mark.parametrize(("name", "index"), HOT.items())
def test_a_hot_statement_uses_the_index_that_it_names(db, name, index):
    assert re.search(rf"\b{index}\b", COMMENTS[name]), "its comment says so"
    steps = plan(db, name)
    assert any(re.search(rf"USING (COVERING )?INDEX {index}\b", step) for step in steps), steps
    assert not [step for step in steps if re.match(r"SCAN (tasks|leases|[tl])\b(?!.*USING)", step)], steps


@pytest.mark.parametrize("name", sorted(IN_ORDER))
def test_the_queue_is_read_in_the_order_of_its_index_without_sorting(db, name):
    assert not [step for step in plan(db, name) if "TEMP B-TREE" in step]


@pytest.mark.parametrize("name", sorted(BY_KEY))
def test_what_is_known_by_its_key_is_found_by_its_key(db, name):
    steps = plan(db, name)
    assert any(re.match(r"SEARCH \w+ USING (INTEGER )?PRIMARY KEY", step) for step in steps), steps
    assert not [step for step in steps if step.startswith("SCAN") and "VIRTUAL TABLE" not in step], steps


def test_every_index_that_a_comment_names_is_one_of_the_schema(db):
    known = {row[0] for row in lane(db).connection().execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    named = {name for text in COMMENTS.values() for name in re.findall(rf"\b(?:{'|'.join(TABLES)})_\w+", text)}
    assert named <= known
    assert {name for name in known if not name.startswith("sqlite_")} <= named, "an index that no statement needs"


@pytest.mark.parametrize(
    "index", ["artifacts_digest", "inputs_filed", "results_filed", "checkpoints_filed", "steps_filed"]
)
def test_whoever_collects_garbage_seeks_each_digest_wherever_it_may_be_named(db, index):
    steps = plan(db, "find_referenced")
    assert any(re.search(rf"SEARCH \w+ USING (COVERING )?INDEX {index} ", step) for step in steps), steps


def test_what_a_colon_parts_within_a_quoted_text_is_no_parameter(db):
    assert find_referenced(db, ["aa"]) == []
    db.submit("q", "x" * limits.FILE_BYTES_MIN)
    address = lane(db).connection().execute("SELECT input FROM inputs").fetchall()[0][0]
    digest = json.loads(address)["relet:artifact"]
    assert find_referenced(db, ["aa", digest]) == [digest]


def find_referenced(db, digests):
    return db.backend.call(Referenced(digests=digests))


def test_the_next_share_and_its_first_task_are_sought_and_never_scanned(db):
    """However many shares there are and however much each has waiting."""
    shares = [step for step in plan(db, "lock_turns") if "tasks_share" in step]
    assert [step.partition("tasks_share ")[2] for step in shares] == [
        "(tenant=? AND queue=? AND share>?)",
        "(tenant=? AND queue=? AND share>?)",
        "(tenant=? AND queue=? AND share=?)",
    ]
    levels = [step for step in plan(db, "lock_before_shares") if "tasks_ready" in step]
    assert levels[-1].endswith("tasks_ready (tenant=? AND queue=? AND priority=? AND seq<?)")


def test_a_task_without_a_share_is_in_no_index_of_shares(db):
    """Its claim and its completion write what they wrote before there were shares."""
    db.submit("q", 1, id="plain")
    db.submit("q", 2, id="shared", share="a")
    found = lane(db).connection().execute("SELECT id FROM tasks INDEXED BY tasks_share WHERE share IS NOT NULL AND "
                                          "state = 'ready' AND delayed = 0").fetchall()  # fmt: skip
    assert found == [("shared",)]


@pytest.mark.parametrize("name", ["extend_lease", "extend_leases", "extend_run"])
def test_a_renewal_touches_no_index(db, name):
    """Else each heartbeat would write a second page."""
    lane(db).connection().execute("BEGIN IMMEDIATE")
    code = lane(db).connection().execute(f"EXPLAIN {SQL[name]}", blanks(name)).fetchall()
    lane(db).connection().execute("ROLLBACK")
    passing = {step[2] for step in code if step[1] == "OpenEphemeral"}
    assert not [step for step in code if step[1] in ("IdxInsert", "IdxDelete") and step[2] not in passing]


def test_every_statement_has_the_parameters_that_are_listed_for_it():
    assert set(LISTED) <= set(SQL)
    for name in SQL:
        assert PREPARED[name][0].count("?") >= len(LISTED.get(name, ()))
