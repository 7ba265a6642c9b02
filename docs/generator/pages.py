"""Put generated parts into the pages, between their two comments, and nowhere else."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parents[1]
END = "<!-- end generated -->"
REGION = re.compile(rf"<!-- generated: (?P<name>[^>]+?) -->\n(?P<text>.*?){re.escape(END)}", re.DOTALL)


def pages() -> list[Path]:
    """All pages of the docs."""
    return sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)


def places(texts: dict[Path, str]) -> Counter[str]:
    """How often each part is asked for."""
    return Counter(found["name"] for text in texts.values() for found in REGION.finditer(text))


def problems(texts: dict[Path, str], parts: dict[str, str]) -> list[str]:
    """Parts without a page, pages that ask for what is not there, and parts that stand in two places."""
    asked = places(texts)
    found = [f"nothing in docs/ has a place for the part {name!r}" for name in parts if name not in asked]
    found += [f"a page asks for the part {name!r}, which the code has not" for name in asked if name not in parts]
    found += [f"the part {name!r} stands in {count} places" for name, count in asked.items() if count > 1]
    for path, text in texts.items():
        if text.count("<!-- generated:") != len(REGION.findall(text)):
            found.append(f"{path.name}: a generated part does not end with {END}")
    return found


def filled(text: str, parts: dict[str, str]) -> str:
    """A page with its parts as they should be now."""

    def fill(found: re.Match[str]) -> str:
        return f"<!-- generated: {found['name']} -->\n\n{parts[found['name']].strip()}\n\n{END}"

    return REGION.sub(fill, text)
