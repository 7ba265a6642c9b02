"""The installed command, as a process: exit codes, streams, completion, and what it loads."""

import json
import os
import signal
import subprocess
import sys

import click
import pytest

from relet.cli.menu import COMMANDS, program
from tests.cli.conftest import program as entry_point
from tests.waiting import eventually

LOADED = """
import sys
from relet.cli.main import run
code = run(sys.argv[1:])
print(code, *sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.slow
def test_a_task_goes_its_way_through_processes(process, folder):
    assert process("submit", "q", "-", "--id", "t-1", stdin='{"a": 1}').out == "t-1\n"
    claimed = process("claim", "q", "--ttl", "30s").json
    env = {"RELET_HANDLE": claimed["handle"]}
    assert process("claim", "--task", "t-1").code == 6
    assert process("renew", env=env).code == 0
    assert process("save", "1", env=env).code == 0
    assert process("complete", '{"b": 2}', env=env).code == 0
    assert process("renew", env=env).code == 5
    assert process("result", "t-1").json == {"b": 2}
    assert process("claim", "q").code == 3
    assert process("show", "nope").code == 10
    assert process("cancel", "t-1").code == 11
    assert process("result", process("submit", "q").out.strip()).code == 124
    assert process("ls", "--bogus").code == 2


def test_without_a_command_it_explains_itself_and_ends_with_2(process):
    done = process()
    assert (done.code, done.out) == (2, "")
    assert "Leases, for shell agents" in done.err
    assert process("--help").code == 0
    assert process("--version").out.startswith("relet ")


def test_an_unknown_command_gets_a_suggestion(process):
    assert "Did you mean 'claim'?" in process("clam").err
    assert process("clam").code == 2


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_failure(process, folder):
    process("submit", "q", "--lines", stdin="1\n" * 900)
    done = subprocess.run(
        f"set -o pipefail; {entry_point()} ls --limit 1000 --json | head -c 1; "
        f"{entry_point()} watch --after 0 --limit 900 | head -n 1",
        shell=True, executable="/bin/bash", capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("{")


def test_an_interrupt_is_130(folder):
    waiting = subprocess.Popen(
        [entry_point(), "watch"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # Whoever started the tests in the background had it ignored, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads here
    )  # fmt: skip
    assert "watching" in waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=10)
    assert (waiting.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_watch_tells_of_changes_as_they_happen(folder, process):
    watching = subprocess.Popen(
        [entry_point(), "watch", "--json", "--limit", "1"], cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "watching" in watching.stderr.readline()
    process("submit", "q", "--id", "t-1")
    out, _ = watching.communicate(timeout=10)
    assert json.loads(out)["task_id"] == "t-1"


@pytest.mark.slow
def test_a_result_is_waited_for(folder, process):
    process("submit", "q", "--id", "t-1")
    waiting = subprocess.Popen(
        [entry_point(), "result", "t-1", "--wait", "20s"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    process("complete", "7", stdin=process("claim", "q").out)
    assert waiting.communicate(timeout=10)[0] == "7\n"
    assert waiting.returncode == 0


@pytest.mark.slow
def test_a_lapsed_lease_is_5_and_its_task_somebody_elses(process):
    process("submit", "q", "--id", "t-1")
    first = process("claim", "q", "--ttl", "100ms").out
    second = eventually(lambda: process("claim", "--task", "t-1", "--ttl", "30s").out)
    assert process("complete", "1", stdin=first).code == 5
    assert process("complete", "2", stdin=second).code == 0
    assert process("result", "t-1").json == 2


def test_output_survives_a_terminal_that_knows_ascii_only(process):
    process("submit", "q", "--id", "t-1")
    done = process("ls", env={"PYTHONIOENCODING": "ascii"})
    assert (done.code, "o ready" in done.out) == (0, True)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_traceback(folder, closed):
    done = subprocess.run(
        f"{entry_point()} sweep {closed}", shell=True, capture_output=True, text=True, check=False, cwd=folder
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    refused = subprocess.run(f"{entry_point()} show nope {closed}", shell=True, check=False, cwd=folder)
    assert refused.returncode == 10


def loaded_by(folder, *args, **env):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *args], capture_output=True, text=True, check=True, cwd=folder,
        env={**os.environ, **env},
    )  # fmt: skip
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(modules)


def test_a_renewal_loads_no_more_than_it_needs(relet, held, folder):
    held()
    loaded = loaded_by(folder, "renew", "--handle-file", "t-1.handle")
    assert "relet.cli.commands.renew" in loaded
    heavy = {"asyncio", "concurrent.futures", "subprocess", "tomllib", "json", "difflib", "socket"}
    assert loaded & heavy == set()
    assert not {name for name in loaded if name.startswith(("relet.worker", "relet.cli.demo"))}
    assert {name for name in loaded if name.startswith("relet.cli.commands.")} == {"relet.cli.commands.renew"}


def test_what_a_heavier_command_loads_is_seen(folder):
    (folder / "relet.toml").write_text("")
    assert {"tomllib", "relet.cli.commands.help"} <= loaded_by(folder, "help", "exit-codes")


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ("relet", "cl", {"claim"}),
        ("relet un", "un", {"unpause"}),
        ("relet submit --max", "--max", {"--max-hold", "--max-attempts", "--max-losses"}),
        ("relet ls --state", "f", {"failed"}),
        ("relet decide r-1 publish re", "re", {"respond"}),
        ("relet completion", "", {"bash", "zsh", "fish"}),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_words_are_completed(process, shell, words, incomplete, expected):
    count = len(words.split()) - (1 if words.endswith(incomplete) and incomplete else 0)
    line = " ".join([*words.split()[:count], incomplete])
    env = {"_RELET_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": str(count)}
    if shell == "fish":
        env["COMP_CWORD"] = incomplete
    done = process(env=env)
    assert done.code == 0, done.err
    found = {word.split("\t")[0] for line in done.out.splitlines() for word in line.replace(",", "\n").split("\n")}
    assert expected <= found | set(done.out.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_the_shell_reads(process, shell):
    done = process("completion", shell)
    assert done.code == 0
    assert f"{shell}_complete" in done.out


def test_a_shell_that_is_not_known_is_refused(process):
    assert process("completion", "cmd").code == 2


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_every_command_has_a_summary_that_fits_a_line_and_an_example(relet, name):
    command = program().get_command(None, name)
    summary = command.get_short_help_str(80)
    assert summary
    assert not summary.endswith("...")
    text = relet("help", name).out
    assert "Example:" in text
    assert f"relet {name}" in text
    assert all(param.help for param in command.params if isinstance(param, click.Option))


def test_help_on_nothing_that_exists_is_usage(relet):
    assert relet("help", "nope").code == 2
    assert "Work:" in relet("help").out
