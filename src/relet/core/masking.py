"""A URL as it may be shown: whatever may be of a password in it is not."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "***"
_PLAIN: Final = re.compile(r"(?P<who>(?>(?:[a-z+]+:/+)?)[^:@/?#]*):[^@/?#]*@(?P<rest>[^@]*)", re.IGNORECASE)
_MIXED: Final = re.compile(r"(?P<who>(?>(?:[a-z+]+:/+)?)[^:@]*):.*@(?P<rest>[^@]*)", re.IGNORECASE | re.DOTALL)
"""With signs in it that should have been written otherwise nobody can say where a password ends: at the last @."""
_SETTING: Final = re.compile(
    r"([\w%]*(?:password|secret|client_key|server_key)\s*=\s*).*?(?=&[\w%]+\s*=|$)", re.IGNORECASE | re.DOTALL
)


def masked(url: str) -> str:
    """The name of a file is shown as it is."""
    if url.startswith("sqlite:"):
        return url
    database, sign, schema = url.partition("#")
    if "@" in schema:
        database, sign, schema = url, "", ""
    if match := _PLAIN.fullmatch(database) or _MIXED.fullmatch(database):
        database = f"{match['who']}:{HIDDEN}@{match['rest']}"
    shown = _SETTING.sub(rf"\1{HIDDEN}", database)
    # After the last setting a # may be of its value.
    return shown if shown.endswith(HIDDEN) else shown + sign + schema
