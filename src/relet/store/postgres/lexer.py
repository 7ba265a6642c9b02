"""The words of a statement, as the server tells them apart: what stands in a literal, or a comment, is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple


class Kind(Enum):
    """What a piece of a statement is."""

    WORD = "word"
    """Of the language, or a name without quotes: in small letters, as the server takes it."""
    NAME = "name"
    """In double quotes."""
    TEXT = "text"
    """A literal."""
    BODY = "body"
    """A literal between dollars: often the text of a function."""
    SIGN = "sign"


class Piece(NamedTuple):
    """One piece of a statement, without its quotes."""

    kind: Kind
    text: str


_PLAIN: Final = r"'(?:[^']|'')*'?"
_ESCAPED: Final = r"'(?:[^'\\]|''|\\.)*'?"
# A literal goes on behind the end of a line, in the way in which it began.
_GOES_ON: Final = r"(?:[ \t\r\f\v]*\n\s*{0})*"
_PIECE: Final = r"""
    (?P<space>\s+|--[^\n]*)
    |(?P<comment>/\*)
    |(?P<escaped>[eE]{escaped})
    |(?:[uU]&|[bBxXnN])?(?P<plain>{plain})
    |(?:[uU]&)?"(?P<name>(?:[^"]|"")*)"?
    |(?P<body>\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z))
    |(?P<word>[^\W\d][\w$]*)
    |(?P<number>[\d$]\w*)
    |(?P<sign>.)
"""


def _piece(plain: str) -> re.Pattern[str]:
    escaped = _ESCAPED + _GOES_ON.format(_ESCAPED)
    return re.compile(_PIECE.format(escaped=escaped, plain=plain + _GOES_ON.format(plain)), re.DOTALL | re.VERBOSE)


_STANDARD, _OLD = _piece(_PLAIN), _piece(_ESCAPED)
_COMMENT: Final = re.compile(r"/\*|\*/")


def pieces(text: str, *, escapes: bool = False) -> Iterator[Piece]:
    """One after the other. With `escapes` every literal has backslashes: standard_conforming_strings is off."""
    pattern = _OLD if escapes else _STANDARD
    at = 0
    while match := pattern.match(text, at):
        at = match.end()
        match match.lastgroup:
            case "comment":
                at = _after_comment(text, at)
            case "word":
                yield Piece(Kind.WORD, match[0].lower())
            case "name":
                yield Piece(Kind.NAME, match["name"].replace('""', '"'))
            case "plain" | "escaped":
                yield Piece(Kind.TEXT, match[0].partition("'")[2].removesuffix("'"))
            case "body":
                mark = len(match["tag"]) + 2
                yield Piece(Kind.BODY, match[0][mark:-mark])
            case "sign":
                yield Piece(Kind.SIGN, match[0])


def _after_comment(text: str, at: int) -> int:
    """Where one ends whose beginning was read; there may be others within it."""
    depth = 1
    while depth and (match := _COMMENT.search(text, at)):
        depth += 1 if match[0] == "/*" else -1
        at = match.end()
    return len(text) if depth else at


def statements(text: str, *, escapes: bool = False) -> Iterator[list[Piece]]:
    """The pieces of each, in a text of several. The body of a function in plain SQL belongs to its statement."""
    found: list[Piece] = []
    depth = 0
    for piece in pieces(text, escapes=escapes):
        if piece == (Kind.SIGN, ";") and not depth:
            yield found
            found = []
            continue
        found.append(piece)
        if piece.kind is Kind.WORD and _makes_a_routine(found):
            depth += piece.text == "begin" or (depth > 0 and piece.text == "case")
            depth -= depth > 0 and piece.text == "end"
    yield found


def _makes_a_routine(found: list[Piece]) -> bool:
    words = [piece.text for piece in found[:4] if piece.kind is Kind.WORD]
    return words[:1] == ["create"] and bool({"function", "procedure"} & set(words))
