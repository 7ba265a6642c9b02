"""Names say what a place is for, and nothing is left to be done later."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ["src", "tests", "bench", "examples", "docs"]
# Names that fit anything, so that anything ends up there.
VAGUE = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
# Put together from halves, so that this file does not find itself.
LATER_WORDS = [first + second for first, second in [("TO", "DO"), ("FIX", "ME"), ("XX", "X")]]
LATER = re.compile(rf"\b(?:{'|'.join(LATER_WORDS)})\b")


def vague_names(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if found := VAGUE.intersection(parts):
                yield f"{path}: {found.pop()!r} says nothing; name it for what it does"


def left_for_later(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".py", ".sql", ".md", ".toml"} or "_build" in path.parts:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if LATER.search(line):
                    yield f"{path}:{number}: {line.strip()}"


def test_no_module_has_a_name_that_fits_anything():
    assert (offenders := list(vague_names(ROOT))) == [], "\n".join(offenders)


def test_nothing_is_left_for_later():
    assert (offenders := list(left_for_later(ROOT))) == [], "\n".join(offenders)


def test_a_vague_name_is_found_as_file_and_as_folder(tmp_path):
    for name in ["src/relet/utils.py", "src/relet/common/clock.py", "src/relet/claim.py"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert len(list(vague_names(tmp_path))) == 2


def test_a_note_for_later_is_found(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "claim.py").write_text(f"x = 1\n# {LATER_WORDS[0]}: the rest\n")
    (offender,) = left_for_later(tmp_path)
    assert "claim.py:2" in offender
