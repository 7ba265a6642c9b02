"""`relet exec`: any program under a lease; what it is given, and what its end means."""

import json
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from relet.worker.program import run_program
from tests.waiting import eventually
from tests.write_lock import write_lock_held

PROGRAMS = Path(__file__).parent / "programs"
EXEC = PROGRAMS / "exec_program.py"


@pytest.fixture
def execute(start, url):
    """Run exec to its end: its exit code, and what it said."""

    def execute(*command, environment=None, **options):
        program = start(EXEC, url, "work", json.dumps(options), *command, environment=environment)
        return program.wait(), program.errors

    return execute


def shell(text):
    return ["sh", "-c", text]


def test_a_program_that_ends_with_0_completes_the_task_with_its_result(db, execute):
    task = db.submit("work", {"words": ["a", "b"]})
    code, _ = execute(*shell('cp "$RELET_INPUT_FILE" "$RELET_RESULT_FILE"'))
    assert code == 0
    assert db.result(task.id) == {"words": ["a", "b"]}
    assert (db.task(task.id).holder, db.task(task.id).attempt) == ("exec", 1)


@pytest.mark.parametrize(
    "text", ["true", 'printf "" > "$RELET_RESULT_FILE"', 'printf "  \\n" > "$RELET_RESULT_FILE"']
)
def test_a_program_that_leaves_no_result_completes_with_null(db, execute, text):
    task = db.submit("work")
    assert execute(*shell(text))[0] == 0
    assert (db.task(task.id).state, db.result(task.id)) == ("done", None)


@pytest.mark.parametrize("code", [64, 70, 74, 76, 78])
def test_codes_that_say_so_fail_the_task_for_good(db, execute, code):
    task = db.submit("work")
    exit_code, said = execute(*shell(f"exit {code}"))
    found = db.task(task.id)
    assert (exit_code, found.state, found.reason, found.code) == (1, "failed", "permanent", f"EXIT-{code}")
    assert found.error == f"the program exited with {code}"
    assert f"the program exited with {code}" in said


@pytest.mark.parametrize("code", [1, 63, 75, 79, 255])
def test_75_and_all_other_codes_are_tried_again(db, execute, code):
    task = db.submit("work")
    assert execute(*shell(f"exit {code}"))[0] == 1
    found = db.task(task.id)
    assert (found.state, found.failures, found.losses, found.code) == ("ready", 1, 0, f"EXIT-{code}")


@pytest.mark.parametrize("name", ["KILL", "SEGV", "TERM"])
def test_a_program_ended_by_a_signal_is_tried_again(db, execute, name):
    task = db.submit("work")
    code, said = execute(*shell(f"kill -{name} $$"))
    found = db.task(task.id)
    assert (code, found.state, found.failures, found.losses) == (1, "ready", 1, 0)
    assert (found.error, found.code) == (f"the program was ended by SIG{name}", f"SIG{name}")
    assert f"SIG{name}" in said


def test_nothing_to_claim_is_3(db, execute):
    code, said = execute("true")
    assert code == 3
    assert "nothing to claim in 'work'" in said
    assert db.place in said


def test_the_program_finds_its_task_in_the_environment(db, url, execute):
    task = db.submit("work", {"n": 1})
    names = ["RELET_URL", "RELET_HANDLE", "RELET_TASK_ID", "RELET_TOKEN", "RELET_ATTEMPT", "RELET_INPUT_FILE", "KEPT"]
    script = (
        "import json, os; "
        f"found = {{name: os.environ.get(name) for name in {names!r}}}; "
        "found['input'] = json.load(open(os.environ['RELET_INPUT_FILE'])); "
        "json.dump(found, open(os.environ['RELET_RESULT_FILE'], 'w'))"
    )
    assert execute(sys.executable, "-c", script, environment={"KEPT": "from outside"})[0] == 0
    found = db.result(task.id)
    claimed = db.history(task.id)[1]
    assert (found["RELET_TASK_ID"], found["RELET_TOKEN"], found["RELET_ATTEMPT"]) == (
        task.id,
        str(claimed.token),
        "1",
    )
    assert (found["RELET_URL"], found["input"], found["KEPT"]) == (url, {"n": 1}, "from outside")
    assert db.lease(found["RELET_HANDLE"]).token == claimed.token
    assert not os.path.exists(found["RELET_INPUT_FILE"])


def test_files_of_the_program_are_its_users_alone(db, execute):
    task = db.submit("work", "secret")
    script = (
        "import json, os, stat; folder = os.path.dirname(os.environ['RELET_INPUT_FILE']); "
        "json.dump(stat.S_IMODE(os.stat(folder).st_mode), open(os.environ['RELET_RESULT_FILE'], 'w'))"
    )
    assert execute(sys.executable, "-c", script)[0] == 0
    assert db.result(task.id) & (stat.S_IRWXG | stat.S_IRWXO) == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('printf "{" > "$RELET_RESULT_FILE"', "is not JSON"), ('printf "NaN" > "$RELET_RESULT_FILE"', "no JSON form"),
        ('printf "\\377" > "$RELET_RESULT_FILE"', "is not UTF-8"), ('mkdir "$RELET_RESULT_FILE"', "cannot be read"),
        ('printf \'"\\\\u0000"\' > "$RELET_RESULT_FILE"', "no store keeps"),
        ('head -c 5000000 /dev/zero > "$RELET_RESULT_FILE"', "more than"),
        ('echo "\\"$(head -c 2000000 /dev/zero | tr "\\0" a)\\"" > "$RELET_RESULT_FILE"', "the limit is"),
        ('head -c 100000 /dev/zero | tr "\\0" "[" > "$RELET_RESULT_FILE"', "is not JSON"),
    ],
)  # fmt: skip
def test_pl_05_a_result_that_cannot_be_kept_fails_the_task_for_good(db, execute, text, problem):
    task = db.submit("work")
    code, said = execute(*shell(text))
    found = db.task(task.id)
    assert (code, found.state, found.reason, found.code) == (1, "failed", "permanent", "RELET-RESULT")
    assert problem in found.error
    assert problem in said


@pytest.mark.parametrize("command", ["/nowhere/at-all", "no-such-program-here", "/etc"])
def test_a_command_that_does_not_exist_is_refused_and_costs_no_task_anything(db, execute, command):
    task = db.submit("work")
    for loop in (False, True):
        code, said = execute(command, loop=loop)
        assert code == 2
        assert said.startswith(f"RELET-EXEC: command: {command!r} cannot be started")
    assert [event.kind for event in db.history(task.id)] == ["submitted"]


def test_a_command_that_cannot_be_started_after_all_gives_its_task_back(db, execute, tmp_path):
    task = db.submit("work")
    broken = tmp_path / "broken"
    broken.write_text("#!/nowhere/interpreter\n")
    broken.chmod(0o700)
    for loop in (False, True):
        code, said = execute(broken, loop=loop)
        assert code == 2
        assert said.startswith("RELET-EXEC: command: ")
    assert (db.task(task.id).state, db.task(task.id).attempt) == ("ready", 1)


def test_no_command_is_refused(db, execute):
    code, said = execute()
    assert code == 2
    assert "write it behind --" in said


@pytest.mark.parametrize("then", [0, 70])
@pytest.mark.parametrize(
    ("how", "code", "state", "result"),
    [("complete", 0, "done", "by the program"), ("fail", 1, "failed", None), ("release", 0, "ready", None)],
)
def test_a_program_that_ends_its_lease_itself_has_the_last_word(db, execute, how, code, state, result, then):
    task = db.submit("work")
    assert execute(sys.executable, PROGRAMS / "own_ending.py", how, then)[0] == code
    found = db.task(task.id)
    assert (found.state, found.result) == (state, result)
    assert found.failures == (1 if how == "fail" else 0)


@pytest.mark.parametrize("then", [0, 70])
@pytest.mark.parametrize(("how", "state"), [("park", "waiting"), ("park and be answered", "ready")])
def test_a_program_that_parks_ends_exec_with_7_however_soon_it_is_answered(db, execute, how, state, then):
    task = db.submit("work")
    assert execute(sys.executable, PROGRAMS / "own_ending.py", how, then)[0] == 7
    found = db.task(task.id)
    assert (found.state, found.attempt, found.failures) == (state, 1, 0)


def test_a_program_that_ends_its_lease_itself_may_go_on_for_a_while(db, execute):
    """The heartbeat hears that the lease is closed; that is no reason to kill the program."""
    task = db.submit("work", ttl="0.6s")
    text = f'"{sys.executable}" "{PROGRAMS / "own_ending.py"}" complete 0; sleep 1; echo went on >&2'
    code, said = execute(*shell(text))
    assert (code, db.result(task.id)) == (0, "by the program")
    assert "went on" in said


def test_a_program_may_save_under_the_handle(db, execute):
    task = db.submit("work")
    assert execute(sys.executable, PROGRAMS / "own_ending.py", "save", 75)[0] == 1
    assert db.claim(task_id=task.id) is None  # not before its backoff is over
    assert [event.kind for event in db.history(task.id)] == ["submitted", "claimed", "saved", "retried"]


def test_what_a_program_did_while_the_store_was_away_is_told_later(db, start, url):
    task = db.submit("work")
    program = start(
        EXEC, url, "work", "{}", *shell('echo started; read line; echo \'"kept"\' > "$RELET_RESULT_FILE"'),
        environment={"PATIENCE_MS": "100"},
    )  # fmt: skip
    program.until("started")
    with write_lock_held(db):
        program.tell("go on")
        eventually(lambda: "stayed locked" in program.errors)
    assert program.wait() == 0
    assert (db.result(task.id), db.task(task.id).attempt) == ("kept", 1)


def test_loop_goes_on_until_nothing_comes_and_answers_with_the_last_end(db, execute):
    tasks = [db.submit("work", n) for n in range(3)]
    code, _ = execute(*shell('cp "$RELET_INPUT_FILE" "$RELET_RESULT_FILE"'), loop=True, wait=0)
    assert code == 0
    assert [db.result(task.id) for task in tasks] == [0, 1, 2]


def test_loop_goes_on_after_a_failure(db, execute):
    bad, good = db.submit("work", 70), db.submit("work", 0)
    code, _ = execute(*shell('exit $(cat "$RELET_INPUT_FILE")'), loop=True, wait=0)
    assert code == 0
    assert [db.task(task.id).state for task in (bad, good)] == ["failed", "done"]


def test_loop_outlives_a_store_that_is_away(db, start, url):
    first = db.submit("work")
    program = start(EXEC, url, "work", json.dumps({"loop": True}), "true", environment={"PATIENCE_MS": "100"})
    db.result(first.id, wait=20)
    with write_lock_held(db):
        eventually(lambda: "stayed locked" in program.errors)
    assert db.result(db.submit("work").id, wait=20) is None
    program.send(signal.SIGTERM)
    assert program.wait() == 0


def test_one_call_takes_one_task(db, execute):
    tasks = [db.submit("work", n) for n in range(2)]
    assert execute("true")[0] == 0
    assert [db.task(task.id).state for task in tasks] == ["done", "ready"]


def test_wait_is_how_long_it_waits_for_a_task(db, start, url):
    program = start(EXEC, url, "work", json.dumps({"wait": 20}), "true")
    task = db.submit("work", delay=0.3)
    assert program.wait() == 0
    assert db.task(task.id).state == "done"


def test_holder_and_ttl_are_those_given(db, execute):
    task = db.submit("work")
    execute("true", holder="me", ttl="90s")
    claimed = db.history(task.id)[1]
    assert (claimed.holder, claimed.detail["ttl_ms"]) == ("me", 90_000)


@pytest.mark.parametrize("options", [{"ttl": "soon"}, {"grace": -1}, {"timeout": 0}])
def test_an_option_that_means_nothing_is_refused_before_anything_is_claimed(db, execute, options):
    task = db.submit("work")
    assert execute("true", **options)[0] == 2
    assert db.task(task.id).token is None


def test_run_program_gives_signals_back(db):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert run_program(db, "work", ["true"]) == 3
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
