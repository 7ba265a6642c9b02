"""Which names are of secrets: keys of a payload, parameters, headers, variables of an environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from typing import Final

WORDS: Final = frozenset({
    "apikey", "authorization", "cookie", "cookies", "credential", "credentials", "passwords", "pwd", "secret",
    "secrets", "token",
})  # fmt: skip
"""One of them in a name is enough, by itself, and not as a part of a longer word."""
ENDS: Final = ("password", "passwd", "passphrase")
"""Whatever is written before them without a sign between."""
KEYS: Final = frozenset({"access", "account", "api", "auth", "client", "encryption", "private", "signing", "ssh"})
"""Before the word `key`, which by itself is of too many things."""
VARIABLES: Final = ("*_KEY", "*_TOKEN", "*_SECRET", "*PASSWORD", "*PASSWD", "RELET_HANDLE")
"""Whose values are secrets, where nobody has named others."""
OURS: Final = frozenset({"RELET_TOKEN"})
"""A number that everybody may see."""
TOKEN: Final = ("token",)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
NAME_CHARS_MAX: Final = 200
"""Nobody calls a secret by a longer name; what is longer is no name."""


@lru_cache(maxsize=1_024)
def secret_words(name: str) -> tuple[str, ...]:
    """What of a name says that its value is a secret: words between `_`, `-`, dots and changes of case."""
    if len(name) > NAME_CHARS_MAX:
        return ()
    words = [word.lower() for word in _WORD.findall(name)]
    pairs = [f"{one} {two}" for one, two in pairwise(words) if one in KEYS and two == "key"]
    return (*(word for word in words if word in WORDS or word.endswith(ENDS)), *pairs)


def named_values(environ: Mapping[str, str], patterns: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Variables of these patterns, in which a `*` is for anything: name, value, and was it named in full."""
    asked = [pattern.upper() for pattern in patterns]
    for name, value in environ.items():
        if name.upper() in asked:
            yield name, value, True
        elif name not in OURS and any(fnmatchcase(name.upper(), pattern) for pattern in asked):
            yield name, value, False
