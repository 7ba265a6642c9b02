"""What the fields of requests may hold, as types: decoding checks them, schemas show them, refusals say them.

A program that makes its requests in Python has parsed its values at the border, and pays nothing: a struct does not
check what it is made of. The words are those of a refusal, "… is not a name of 1 to 200 characters …".
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from relet.core import limits
from relet.core.bond import SIGN

CONTROL: Final = r"\x00-\x1f\x7f"
"""As a class of a pattern: characters that no name may hold, since one engine or another cannot keep them."""
# A pattern may match anywhere, and `$` stands before a last line break as well: so each looks ahead from the start.
_ALL_CLEAN: Final = rf"(?![\s\S]*[{CONTROL}])"
_END: Final = r"(?![\s\S])"
_HEX_64: Final = r"[0-9a-f]{64}"
_PLAIN: Final = "none of them a control character"


def _between(least: int, most: int, what: str = "a whole number") -> Meta:
    return Meta(ge=least, le=most, description=f"{what} of {least} to {most}")


def _ms(least: int, most: int) -> Meta:
    return _between(least, most, "a whole number of milliseconds")


def _chars(least: int, most: int, *, what: str = "text", pattern: str = "", but: str = _PLAIN) -> Meta:
    return Meta(
        min_length=least, max_length=most, pattern=f"^{pattern}{_ALL_CLEAN}",
        description=f"{what} of {least} to {most} characters, {but}",
    )  # fmt: skip


def _text(most: int) -> Meta:
    return Meta(
        max_length=most, pattern=r"^(?![\s\S]*\x00)",
        description=f"text of at most {most} characters, none of them NUL",
    )  # fmt: skip


def _form(pattern: str, what: str) -> Meta:
    return Meta(pattern=f"^{pattern}{_END}", description=what)


def items(least: int, most: int, *, unique: bool = False) -> Meta:
    """So many of a list."""
    return Meta(
        min_length=least, max_length=most, extra_json_schema={"uniqueItems": True} if unique else None,
        description=f"a list of {least} to {most} items{', no two of them equal' if unique else ''}",
    )  # fmt: skip


def entries(most: int) -> Meta:
    """So many of a mapping."""
    return Meta(max_length=most, description=f"a mapping of at most {most} entries")


def one_of(*allowed: str) -> Meta:
    """Some members of a closed set, where the others are not for who asks."""
    names = [str(one) for one in allowed]
    return Meta(extra_json_schema={"enum": names}, description=f"one of {', '.join(names)}")


# Names. What is made for names and ids is one itself: call ids, request ids, digests of questions.
Name = Annotated[str, _chars(1, limits.NAME_CHARS_MAX, what="a name")]
TaskId = Annotated[str, _chars(1, limits.ID_CHARS_MAX, what="an id")]
AfterName = Annotated[str, _chars(0, limits.NAME_CHARS_MAX)]
"""The last name of a page, empty before the first."""
FileName = Annotated[
    str,
    _chars(
        1, limits.NAME_CHARS_MAX, what="a plain name", pattern=rf"(?!\.{{1,2}}{_END})(?![\s\S]*[/\\])",
        but=f"{_PLAIN}; a name is no path",
    ),
]  # fmt: skip
CallId = Annotated[
    str, _chars(1, limits.NAME_CHARS_MAX, what="an id", pattern=rf"(?![\s\S]*{SIGN})", but=f"{_PLAIN}, nor {SIGN}")
]
"""Binds to no lock: that is the word of a process of the store's own machine, which holds it."""
Slot = Annotated[
    str,
    Meta(
        min_length=2,
        max_length=1 + limits.NAME_CHARS_MAX,
        pattern=rf"^(?:#[1-9][0-9]{{0,8}}{_END}|={_ALL_CLEAN})",
        description="`#` and which call of its name a step is, or `=` and its key",
    ),
]
AfterSlot = Annotated[str, _chars(0, 1 + limits.NAME_CHARS_MAX)]
AfterStep = tuple[AfterName, AfterSlot]
Secret = Annotated[str, _chars(0, limits.NAME_CHARS_MAX)]
"""Any text, for a wrong one proves nothing."""
Text = Annotated[str, _text(limits.TEXT_CHARS_MAX)]
Fingerprint = Annotated[str, _text(limits.NAME_CHARS_MAX)]
Sha256 = Annotated[str, _form(_HEX_64, "a SHA-256 as 64 digits of lower-case hex")]
ArtifactUri = Annotated[str, _form(f"artifact:{_HEX_64}", "`artifact:` and 64 digits of lower-case hex")]

# Durations and dates.
DurationMs = Annotated[int, _ms(0, limits.DURATION_MS_MAX)]
SpanMs = Annotated[int, _ms(1, limits.DURATION_MS_MAX)]
TtlMs = Annotated[int, _ms(limits.TTL_MS_MIN, limits.TTL_MS_MAX)]
MaxHoldMs = Annotated[int, _ms(limits.TTL_MS_MIN, limits.DURATION_MS_MAX)]
AgeMs = Annotated[int, _ms(limits.PRUNE_AGE_MS_MIN, limits.DURATION_MS_MAX)]
RateMs = Annotated[int, _ms(0, limits.RATE_MS_MAX)]
SettlesMs = Annotated[int, _ms(0, 2 * limits.DURATION_MS_MAX)]
"""A flight and a delay, each as long as any duration."""
WallMs = Annotated[int, _between(0, limits.WALL_MS_MAX, "a time in milliseconds since 1970, UTC,")]

# Counts.
Attempts = Annotated[int, _between(1, limits.ATTEMPTS_MAX)]
Nth = Annotated[int, _between(1, limits.NTH_MAX)]
Priority = Annotated[int, _between(-limits.PRIORITY_MAX, limits.PRIORITY_MAX)]
Places = Annotated[int, _between(0, limits.CONCURRENCY_MAX)]
Rate = Annotated[int, _between(0, limits.RATE_MAX)]
Token = Annotated[int, _between(0, limits.TOKEN_MAX)]
Cursor = Annotated[int, _between(0, limits.TOKEN_MAX)]
AuditSeq = Annotated[int, _between(1, limits.TOKEN_MAX)]
PageItems = Annotated[int, _between(1, limits.PAGE_ITEMS_MAX)]
BulkItems = Annotated[int, _between(1, limits.BULK_ITEMS_MAX)]
ClaimItems = Annotated[int, _between(1, limits.CLAIM_ITEMS_MAX)]
Size = Annotated[int, _between(0, limits.ARTIFACT_BYTES_MAX)]
Cost = Annotated[float, Meta(ge=0, le=limits.COST_MAX, description=f"a number of 0 to {limits.COST_MAX:g}")]

# Lists and mappings.
Queues = Annotated[list[Name], items(0, limits.QUEUES_PER_CLAIM_MAX, unique=True)]
Kinds = Annotated[list[Name], items(1, limits.KINDS_PER_CLAIM_MAX, unique=True)]
Digests = Annotated[list[Sha256], items(0, limits.ARTIFACTS_PER_BATCH)]
Labels = Annotated[dict[Name, Name], entries(limits.LABELS_MAX)]
