"""What a statement in a user's own transaction may not do: reach relet's tables, or end the transaction."""

from __future__ import annotations

from typing import Final

from relet.store.postgres.lexer import Kind, Piece, statements

_ENDS: Final = frozenset(["commit", "end", "abort", "begin", "start"])
_ROUTINES: Final = frozenset(["do", "create"])
"""What stands in a literal of theirs is run, now or later."""
_DOT: Final = Piece(Kind.SIGN, ".")
_OPENS: Final = Piece(Kind.SIGN, "(")
_PATH: Final = "search_path"


def is_out_of_reach(text: str, schema: str, *, escapes: bool = False) -> bool:
    """Is it one of these; `text` may be several statements."""
    return any(
        _ends(each) or _reaches(each, schema) or _sets_path(_words(each[:3]))
        for each in statements(text, escapes=escapes)
    )


def _ends(statement: list[Piece]) -> bool:
    words = _words(statement[:3])
    if words[:1] == ["rollback"]:
        return "to" not in words
    return words[:2] == ["prepare", "transaction"] or not _ENDS.isdisjoint(words[:1])


def _reaches(statement: list[Piece], schema: str) -> bool:
    names = _words(statement)
    for n, name in enumerate(names):
        if name == schema and (statement[n + 1 : n + 2] == [_DOT] or "schema" in names[max(0, n - 3) : n]):
            return True
        if name == "set_config" and statement[n + 1 : n + 3] == [_OPENS, (Kind.TEXT, _PATH)]:
            return True
    if _ROUTINES.isdisjoint(names[:1]):
        return False
    within = [piece.text for piece in statement if piece.kind in (Kind.BODY, Kind.TEXT)]
    return any(_runs(each, schema) for text in within for each in statements(text))


def _runs(within: list[Piece], schema: str) -> bool:
    """The same of a part of a routine's text, in which words of another language stand before."""
    words = _words(within)
    return _reaches(within, schema) or any(_sets_path(words[n : n + 3]) for n in range(len(words)))


def _sets_path(words: list[str]) -> bool:
    """Do they begin with a SET, or RESET, of what is meant by a name alone."""
    told = words[2:3] if words[1:2] in (["local"], ["session"]) else words[1:2]
    return (words[:1] == ["set"] and told in ([_PATH], ["schema"])) or (
        words[:1] == ["reset"] and told in ([_PATH], ["all"])
    )


def _words(pieces: list[Piece]) -> list[str]:
    """Words and names, each in its place; nothing where something else is."""
    return [piece.text if piece.kind in (Kind.WORD, Kind.NAME) else "" for piece in pieces]
