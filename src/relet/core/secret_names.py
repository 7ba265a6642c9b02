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
KEYS: Final = frozenset({
    "access", "account", "api", "auth", "client", "encryption", "master", "private", "secret", "signing", "ssh",
})  # fmt: skip
"""Before the word `key`, which by itself is of too many things."""
HANDLE: Final = "RELET_HANDLE"
"""A secret of ours whose name does not say it."""
NONE: Final = frozenset({"RELET_TOKEN", "PWD", "OLDPWD"})
"""A number that everybody may see, and the folders of a shell, which are no passwords."""
PLACES: Final = frozenset({"file", "path", "dir", "url"})
"""Behind a secret's name: where it is, and not what."""
FOUND_CHARS_MIN: Final = 8
LONG_CHARS: Final = 16
"""Of so many characters a value that was found is a secret whatever they are."""
TOKEN: Final = ("token",)
_ORDINARY: Final = re.compile(r"(?:[^\W\d]|[.-])*|[\d_.:-]*")
"""Words and names without a digit, and numbers: `worker`, `nightly-mails`, `2026-11-30`."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
NAME_CHARS_MAX: Final = 200
"""Nobody calls a secret by a longer name; what is longer is no name."""


@lru_cache(maxsize=1_024)
def secret_words(name: str) -> tuple[str, ...]:
    """What of a name says that its value is a secret: words between `_`, `-`, dots and changes of case."""
    if len(name) > NAME_CHARS_MAX:
        return ()
    words = _words(name)
    if words and words[-1] in PLACES:
        return ()
    pairs = [f"{one} {two}" for one, two in pairwise(words) if one in KEYS and two == "key"]
    return (*(word for word in words if word in WORDS or word.endswith(ENDS)), *pairs)


def secret_variables(environ: Mapping[str, str], patterns: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    """Name and value of what an environment holds under these names, in which a `*` is for anything.

    Without any, of what is a secret by its name. What nobody has named in full must look like one, too.
    """
    asked = None if patterns is None else [pattern.upper() for pattern in patterns]
    for name, value in environ.items():
        in_full = asked is not None and name.upper() in asked
        if in_full or (name not in NONE and looks_secret(value) and _is_asked(name, asked)):
            yield name, value


def looks_secret(value: str) -> bool:
    """Is it no word, no name and no number, as they stand in texts that tell nothing secret."""
    return len(value) >= LONG_CHARS or (len(value) >= FOUND_CHARS_MIN and _ORDINARY.fullmatch(value) is None)


def _is_asked(name: str, asked: Sequence[str] | None) -> bool:
    if asked is not None:
        return any(fnmatchcase(name.upper(), pattern) for pattern in asked)
    return name == HANDLE or _ends_as_secret(name)


def _ends_as_secret(name: str) -> bool:
    """Is its last word, numbers apart, one of a secret: `TOKEN_URL` and `PASSWORD_FILE` hold none."""
    words = [word for word in _words(name) if not word.isdigit()]
    return bool(secret_words("_".join(words[-2:]) if words[-1:] == ["key"] else "".join(words[-1:])))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
