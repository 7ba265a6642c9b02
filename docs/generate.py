"""`python -m docs.generate`: bring what is generated up to date, in pages and beside them; `--check` only looks."""

from __future__ import annotations

import sys

from docs.generator import interface, settings
from docs.generator.pages import DOCS, filled, pages, problems
from docs.generator.parts import all_parts


def main(arguments: list[str]) -> int:
    """Write what differs, and name it; 1 when something is wrong, or stale and only looked at."""
    texts = {path: path.read_text(encoding="utf-8") for path in pages()}
    parts = all_parts()
    if found := problems(texts, parts):
        sys.stderr.write("\n".join([*found, ""]))
        return 1
    wanted = {path: filled(text, parts) for path, text in texts.items()}
    wanted |= {beside.FILE: beside.text() for beside in (interface, settings)}
    changed = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        sys.stdout.write(f"{path.relative_to(DOCS)}\n")
        if "--check" not in arguments:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if changed and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
