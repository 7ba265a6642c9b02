"""`relet exec` and `relet worker` hand over to the worker's rooms what was asked of them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import program

WORK = """
import relet
app = relet.App()

@app.task("double", queue="q")
def double(run, n: int) -> int:
    return 2 * n
"""


@pytest.mark.slow
def test_a_program_runs_under_a_lease_and_its_result_is_kept(process):
    process("submit", "q", '{"n": 2}', "--id", "t-1")
    script = 'relet save 1 && cat "$RELET_INPUT_FILE" > "$RELET_RESULT_FILE"'
    done = process("exec", "q", "--ttl", "30s", "--", "sh", "-c", script, env=on_path())
    assert done.code == 0, done.err
    assert process("result", "t-1").json == {"n": 2}
    assert "saved" in process("history", "t-1").out


def on_path():
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.slow
def test_a_program_that_fails_is_1_and_nothing_to_do_3(process):
    process("submit", "q", "--id", "t-1")
    assert process("exec", "q", "--", "sh", "-c", "exit 65").code == 1
    assert process("show", "t-1", "--json").json["task"]["state"] == "failed"
    assert process("exec", "q", "--wait", "10ms", "--", "true").code == 3


def test_options_of_the_program_are_its_own(process):
    process("submit", "q", "--id", "t-1")
    done = process("exec", "q", "--", "sh", "-c", 'test "$1" = --json', "sh", "--json")
    assert done.code == 0, done.err


@pytest.mark.parametrize("args", [["exec"], ["exec", "q"], ["exec", "q", "sh", "--bogus"], ["exec", "q", "--"]])
def test_a_program_that_is_not_named_is_usage(process, args):
    assert process(*args).code == 2


@pytest.mark.parametrize("app", ["nope:app", "work", "work:nothing"])
def test_an_app_that_is_not_there_is_usage(process, folder, app):
    (folder / "work.py").write_text(WORK)
    done = process("worker", app)
    assert done.code == 2
    assert "app" in done.err


@pytest.mark.slow
def test_a_worker_runs_until_it_is_told_to_end(process, folder):
    (folder / "work.py").write_text(WORK)
    process("submit", "q", '{"n": 21}', "--id", "t-1", "--kind", "double")
    worker = subprocess.Popen(
        [program(), "worker", "work:app", "--queues", "q", "--concurrency", "2", "--holder", "W"],
        cwd=folder, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process("result", "t-1", "--wait", "20s").json == 42
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=20)
    assert worker.returncode == 0
    assert f"W on {folder}/relet.db" in err
    assert process("worker", "work:app", "--concurrency", "0").code == 2


def test_a_program_acts_under_its_lease_in_another_tenant(process):
    process("submit", "q", "--id", "t-1", "--tenant", "blue")
    done = process("--tenant", "blue", "exec", "q", "--", "relet", "save", "1", env=on_path())
    assert done.code == 0, done.err
    assert process("show", "t-1", env={"RELET_TENANT": "blue"}).code == 0
