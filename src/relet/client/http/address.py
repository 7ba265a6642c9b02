"""Where a service is, and by which credential it is asked."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from relet.core.border import invalid, shown
from relet.core.masking import masked
from relet.core.whoami import PREFIX

_FORM: Final = "http://host:8787"
KEY_VARIABLE: Final = "RELET_API_KEY"
FILE_VARIABLE: Final = "RELET_API_KEY_FILE"
_KEY: Final = re.compile(r"[!-~]{1,500}")
"""What a header can carry."""


def checked(url: str) -> str:
    """The address of a service without a slash at its end. Raises `Invalid` for what is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise invalid(
            "url", f"{_without_secrets(url)} is no address, by its host or its port; write {_FORM}"
        ) from None
    if not parts.hostname or port == 0:
        raise invalid("url", f"{_without_secrets(url)} names no host; write {_FORM}")
    if parts.username is not None or parts.password is not None:
        raise invalid(
            "url",
            f"{_without_secrets(url)} carries a credential, which would be shown wherever the address is; set it in "
            f"${KEY_VARIABLE}, or name a file with it in ${FILE_VARIABLE}",
        )
    if parts.query or parts.fragment:
        raise invalid("url", f"{_without_secrets(url)} has more than a host and a path; write {_FORM}")
    address = url.rstrip("/")
    if parts.path.rstrip("/").endswith(PREFIX):
        raise invalid(
            "url",
            f"{_without_secrets(url)} ends with {PREFIX}, which each request adds by itself; leave it out: "
            f"{address.removesuffix(PREFIX)}",
        )
    return address


def _without_secrets(url: str) -> str:
    """What stands behind a ? or a # is often one."""
    return shown(masked(url).partition("?")[0].partition("#")[0])


def credential() -> str | None:
    """The key of this program: `$RELET_API_KEY`, else the text of `$RELET_API_KEY_FILE`. Never shown in errors."""
    if key := os.environ.get(KEY_VARIABLE):
        return _clean(KEY_VARIABLE, key.strip())
    if not (path := os.environ.get(FILE_VARIABLE)):
        return None
    try:
        key = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        why = getattr(wrong, "strerror", None) or type(wrong).__name__
        raise invalid(
            FILE_VARIABLE, f"{shown(path)} cannot be read ({why}); name a file with the key in it"
        ) from wrong
    return _clean(FILE_VARIABLE, key.strip())


def _clean(variable: str, key: str) -> str:
    if not _KEY.fullmatch(key):
        raise invalid(variable, "is no key; it is one line, as `relet token create` has shown it")
    return key
