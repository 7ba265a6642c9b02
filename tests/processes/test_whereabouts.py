"""Where a child finds the function of a handler: in a module, in a script, in what was started as a module."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import relet
from tests.processes import apart_handlers
from tests.processes.program import IMPORTS

WORK = """
import sys
import msgspec
import relet

app = relet.App()


class Order(msgspec.Struct):
    n: int
    of: "list[Order]" = []


@app.task("count", isolation="process", retry=relet.RetryPolicy(max_attempts=1))
def count(run, order: Order):
    return [__name__, order.n, len(order.of)]


if __name__ == "__main__":
    with relet.connect(sys.argv[1]) as db:
        task = count.submit(db, {"n": 3, "of": [{"n": 1}]})
        app.run_until_idle(db)
        seen = db.task(task.id)
        print(seen.result if seen.result is not None else seen.error)
"""


@pytest.fixture
def run(tmp_path, url):
    """The end of what Python prints that is started by these words, in a folder of its own."""
    (tmp_path / "script.py").write_text(WORK)
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "named.py").write_text("NAME = 'x'\n")
    for name in ("work", "__main__"):
        (package / f"{name}.py").write_text(f"from .named import NAME\n{WORK}")

    def run(*words, **options):
        environment = {**os.environ, "PYTHONPATH": IMPORTS}
        done = subprocess.run(
            [sys.executable, *words, url], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False,
            **options,
        )  # fmt: skip
        return (done.stdout or done.stderr).strip().splitlines()[-1]

    return run


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["script.py"], "__relet_child__"),
        (["-m", "script"], "script"),
        (["-m", "package.work"], "package.work"),
        (["-m", "package"], "package.__main__"),
    ],
)
def test_a_handler_is_found_however_its_program_was_started(run, words, module):
    assert run(*words) == str([module, 3, 1])


def test_a_handler_of_a_program_that_no_file_holds_is_refused_at_the_start(run):
    assert "its module has no file; move it into one" in run("-", input=WORK)
    assert "its module has no file; move it into one" in run("-c", WORK)


def test_a_partial_runs_apart_where_its_function_and_its_app_are_together(db):
    task = apart_handlers.adds.submit(db, 40)
    with apart_handlers.app.worker(db, ["work"]):
        n, pid = db.result(task.id, wait=30)
    assert n == 42
    assert pid != os.getpid()


def test_a_handler_whose_app_is_in_another_module_than_its_function_is_refused_at_the_start(db):
    app = relet.App()
    app.task("sum", isolation="process")(apart_handlers._add)
    with pytest.raises(relet.Invalid, match=r"sum: _add is not at the top .* and the app beside it"):
        app.run_until_idle(db)


def test_two_handlers_of_one_name_are_told_apart_by_their_kinds(tmp_path, db, monkeypatch):
    (tmp_path / "twice_named.py").write_text(
        "import relet\n"
        "app = relet.App()\n"
        + "".join(
            f"@app.task('{kind}', isolation='process')\ndef work(run):\n    return '{kind}'\n"
            for kind in ("first", "second")
        )
    )
    monkeypatch.syspath_prepend(tmp_path)
    import twice_named

    tasks = [twice_named.app.handlers[kind].submit(db) for kind in ("first", "second")]
    with twice_named.app.worker(db):
        assert [db.result(task.id, wait=30) for task in tasks] == ["first", "second"]
    assert Path(twice_named.__file__).parent == tmp_path
