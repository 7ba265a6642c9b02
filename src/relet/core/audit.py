"""The chain of the audit log: each line's digest is of the line and of the digest before it.

Whoever alters or removes a line has to write every later one anew, and whoever has kept a digest sees that. Where the
oldest lines were pruned, a line of the log itself keeps the number and the digest of the last of them.
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
PRUNED: Final = "prune_audit"
"""The operation of a line that tells up to where the log was pruned."""
ALTERED: Final = "its digest is not that of what it says, behind the line before it"
_ENCODER: Final = msgspec.json.Encoder()


def chained(before: str, row: AuditRow) -> str:
    """The digest of a line behind another one's."""
    *told, _ = msgspec.structs.astuple(row)
    return sha256(before.encode() + _ENCODER.encode(told)).hexdigest()


def anchor(last: AuditRow) -> str:
    """What such a line keeps of the last one that was removed."""
    return f"{last.seq}:{last.digest}"


def broken(rows: Iterable[AuditRow], end: tuple[int, str]) -> Iterator[Finding]:
    """Where the chain does not hold, line by line in their order; `end` is the last one by the word of the store."""
    seq, digest = 0, FIRST
    oldest: AuditRow | None = None
    for row in rows:
        if row.seq != seq + 1 and seq == 0:
            oldest = row
        elif row.seq != seq + 1:
            yield _finding(row.seq, f"the line before it is {seq}: some were removed")
        elif row.digest != chained(digest, row):
            yield _finding(row.seq, ALTERED)
        if oldest is not None and (before := _anchored(row, oldest.seq - 1)) is not None:
            if oldest.digest != chained(before, oldest):
                yield _finding(oldest.seq, ALTERED)
            oldest = None
        seq, digest = row.seq, row.digest
    if oldest is not None:
        yield _finding(oldest.seq, "the lines before it are gone, and no line tells that they were pruned")
    if (seq, digest) != end:
        yield _finding(seq, f"the log ends with it, and with {end[0]} by the word of the store")


def _anchored(row: AuditRow, seq: int) -> str | None:
    """The digest of the line of this number, if that was the last one to leave by what this line tells."""
    if row.operation != PRUNED or row.target is None:
        return None
    told, _, digest = row.target.partition(":")
    return digest if told == str(seq) else None


def _finding(seq: int, text: str) -> Finding:
    return Finding(rule=RULE, row=f"audit {seq}", text=text)
