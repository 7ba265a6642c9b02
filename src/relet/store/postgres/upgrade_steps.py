"""The numbered steps of this engine's schema: what is added beside older clients, and what leaves after them.

`0002_name.sql` is applied while clients of schema 1 go on; `0002_name.post.sql`, where there is one, once none is
left.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

_FILE: Final = re.compile(r"(\d{4})_(\w+?)(\.post)?\.sql")
_COMMENT: Final = re.compile(r"^--.*\n?", re.MULTILINE)
_ADDS: Final = (
    "CREATE TABLE IF NOT EXISTS ", "CREATE INDEX CONCURRENTLY IF NOT EXISTS ",
    "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS ",
)  # fmt: skip
_ADDS_COLUMN: Final = re.compile(r"ALTER TABLE \S+ ADD COLUMN IF NOT EXISTS ")
"""Nothing that stands in the way of a client that knows nothing of it, and all of it may be done twice."""
_ALONE: Final = re.compile(r"^(CREATE (UNIQUE )?|DROP )INDEX CONCURRENTLY ")
_ONCE: Final = re.compile(r"DROP INDEX CONCURRENTLY (?!IF EXISTS)")
MADE: Final = re.compile(r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (\w+) ON (\S+)")
"""The name of an index that is made beside the users of its table, and the table."""


class Step(NamedTuple):
    """One number: its name, and its statements in their order."""

    number: int
    name: str
    pre: tuple[str, ...]
    post: tuple[str, ...]


def steps(folder: Path, schema: int, min_writer: int) -> list[Step]:
    """Those of a folder, 1 to `schema` without a gap. Raises LookupError for what old clients cannot live beside."""
    texts: dict[tuple[int, bool], tuple[str, tuple[str, ...]]] = {}
    for item in sorted(folder.iterdir()):
        if match := _FILE.fullmatch(item.name):
            texts[int(match[1]), match[3] is not None] = item.name, statements(item.read_text(encoding="utf-8"))
    numbers = sorted(number for number, is_post in texts if not is_post)
    if numbers != list(range(1, schema + 1)):
        raise LookupError(f"{folder}: migrations {[name for name, _ in texts.values()]} do not lead to {schema}")
    found = []
    for number in numbers:
        (name, pre), (post_name, post) = texts[number, False], texts.get((number, True), ("", ()))
        if number > 1:
            _check_pre(name, pre)
        if post and number > min_writer:
            raise LookupError(f"{post_name}: takes something from clients, and so needs MIN_WRITER {number}")
        if any(map(_ONCE.match, post)):
            raise LookupError(f"{post_name}: what is not part of a transaction must bear to be done twice: IF EXISTS")
        found.append(Step(number, name, pre, post))
    return found


def _check_pre(name: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        is_column = _ADDS_COLUMN.match(text) and ("NOT NULL" not in text or "DEFAULT" in text)
        if not (text.startswith(_ADDS) or is_column):
            raise LookupError(
                f"{name}: clients of the schema before cannot live beside, or it cannot be done twice: {text[:60]}; "
                "add only, with IF NOT EXISTS, indexes CONCURRENTLY, columns nullable or with a default"
            )


def statements(text: str) -> tuple[str, ...]:
    """One by one, without comments; some relatives take no more at once."""
    parts = _COMMENT.sub("", text).split(";\n")
    return tuple(part.strip().removesuffix(";") for part in parts if part.strip())


def is_alone(text: str) -> bool:
    """Is it done beside its table's users, and therefore in no transaction."""
    return _ALONE.match(text) is not None


def fresh(found: list[Step]) -> list[str]:
    """What makes the tables where there are none: all of it in one transaction, since nobody uses them yet."""
    return [text.replace(" CONCURRENTLY", "") for step in found for text in (*step.pre, *step.post)]
