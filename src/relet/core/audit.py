"""The chain of the audit log: each line's digest is of the line and of the digest before it.

Whoever alters or removes a line has to write every later one anew, and whoever has kept a digest sees that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

import msgspec

from relet.core.keys_tx import AuditRow
from relet.core.upkeep import Finding

FIRST: Final = ""
"""The digest before that of the first line."""
RULE: Final = "audit-is-whole"
_ENCODER: Final = msgspec.json.Encoder()


def chained(before: str, row: AuditRow) -> str:
    """The digest of a line behind another one's."""
    *told, _ = msgspec.structs.astuple(row)
    return sha256(before.encode() + _ENCODER.encode(told)).hexdigest()


def broken(rows: Iterable[AuditRow], end: tuple[int, str]) -> Iterator[Finding]:
    """Where the chain does not hold, line by line in their order; `end` is the last one by the word of the store."""
    seq, digest = 0, FIRST
    for row in rows:
        if row.seq != seq + 1:
            yield _finding(row.seq, f"the line before it is {seq}: some were removed")
        elif row.digest != chained(digest, row):
            yield _finding(row.seq, "its digest is not that of what it says, behind the line before it")
        seq, digest = row.seq, row.digest
    if (seq, digest) != end:
        yield _finding(seq, f"the log ends with it, and with {end[0]} by the word of the store")


def _finding(seq: int, text: str) -> Finding:
    return Finding(rule=RULE, row=f"audit {seq}", text=text)
