"""No file and no function grows past what one reading can hold."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
SOURCE = ROOT / "src"
ALL_PYTHON = [SOURCE, ROOT / "tests", ROOT / "bench", ROOT / "examples", ROOT / "docs"]


def long_files(folders):
    for path in (*python_files(folders), *statement_files(folders)):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > FILE_LINES_MAX:
            yield f"{path}: {lines} lines, {FILE_LINES_MAX} at most: make two rooms of it"


def long_functions(folders):
    for path in python_files(folders):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{path}:{node.lineno}: {node.name} has {lines} lines, {FUNCTION_LINES_MAX} at most"


def statement_files(folders):
    """Not migrations: what one of them makes stands in it as a whole, and stays as it is."""
    for folder in folders:
        yield from sorted(path for path in folder.rglob("*.sql") if path.parent.name != "migrations")


def python_files(folders):
    for folder in folders:
        yield from sorted(folder.rglob("*.py"))


def test_no_file_is_too_long():
    assert (offenders := list(long_files(ALL_PYTHON))) == [], "\n".join(offenders)


def test_no_function_of_the_library_is_too_long():
    assert (offenders := list(long_functions([SOURCE]))) == [], "\n".join(offenders)


def test_a_file_one_line_too_long_is_found(tmp_path):
    (tmp_path / "fits.py").write_text("x = 1\n" * FILE_LINES_MAX)
    (tmp_path / "long.py").write_text("x = 1\n" * (FILE_LINES_MAX + 1))
    (tmp_path / "long.sql").write_text("SELECT 1;\n" * (FILE_LINES_MAX + 1))
    found = [line.split(":")[0] for line in long_files([tmp_path])]
    assert found == [str(tmp_path / "long.py"), str(tmp_path / "long.sql")]


def test_a_function_one_line_too_long_is_found(tmp_path):
    body = "    x = 1\n" * (FUNCTION_LINES_MAX - 1)
    (tmp_path / "code.py").write_text(f"def fits():\n{body}\nasync def long():\n{body}    x = 2\n")
    (offender,) = long_functions([tmp_path])
    assert f"long has {FUNCTION_LINES_MAX + 1} lines" in offender
