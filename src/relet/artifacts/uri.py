"""The name of an artifact: `artifact:` and the SHA-256 of its bytes, whatever place they are in."""

from __future__ import annotations

import re
from typing import Any, Final

from relet.core.border import invalid, shown

SCHEME: Final = "artifact:"
_DIGEST: Final = re.compile("[0-9a-f]{64}")


def uri_of(digest: str) -> str:
    """The URI of the bytes with this SHA-256, given in hex."""
    return f"{SCHEME}{digest}"


def digest_of(uri: Any, field: str = "uri") -> str:
    """The SHA-256 that a URI names; `Invalid` for anything else, since nothing of it may reach a path."""
    if not isinstance(uri, str) or not uri.startswith(SCHEME) or not _DIGEST.fullmatch(uri, len(SCHEME)):
        raise invalid(
            field,
            f"{shown(uri)} is not an artifact's URI; it is {SCHEME} and 64 digits of lower-case hex, "
            "as the attach answered it",
        )
    return uri[len(SCHEME) :]


def given_digest(field: str, value: Any) -> str:
    """A SHA-256 in hex, as somebody else computed it."""
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise invalid(
            field, f"{shown(value)} is not a SHA-256; give 64 digits of lower-case hex, as hexdigest() does"
        )
    return value
