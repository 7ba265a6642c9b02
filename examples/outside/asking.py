"""One HTTP request, and what its failure means: no for good, not now, or an outcome that nobody knows."""

from __future__ import annotations

import http.client
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

import relet

HERE = {"127.0.0.1", "localhost", "::1"}
WAIT_S_MAX = 3_600.0
SAID_CHARS_MAX = 200


class Declined(relet.NotApplied, relet.Permanent):
    """The other side said no: nothing was done there, and the same request would meet the same answer."""


class NotNow(relet.NotApplied, relet.Temporary):
    """Nothing was done there; the same request may be made again."""


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows nobody: a redirect would carry the credential to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def ask(url: str, body: Any = None, *, headers: Mapping[str, str] | None = None, timeout: float = 10.0) -> bytes:
    """GET, or POST `body` as JSON; the bytes of the answer.

    Raises `Declined` or `NotNow` when nothing was done there, and plain `relet.Temporary` when nobody can know.
    """
    sent = {"Accept": "application/json, text/plain", **(headers or {})}
    if body is not None:
        sent["Content-Type"] = "application/json"
    data = None if body is None else msgspec.json.encode(body)
    proxies: dict[str, str] | None = {} if urllib.parse.urlsplit(url).hostname in HERE else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies), _Straight())
    try:
        with opener.open(urllib.request.Request(url, data, sent), timeout=timeout) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as refused:
        with refused:
            raise _meaning(url, refused) from None
    except urllib.error.URLError as unreached:
        if isinstance(unreached.reason, (ConnectionRefusedError, socket.gaierror)):
            raise NotNow(f"{url} cannot be reached: {unreached.reason}") from None
        raise relet.Temporary(f"{url} did not answer: {unreached.reason}") from None
    except (http.client.HTTPException, OSError) as broken:
        raise relet.Temporary(f"{url} did not answer: {broken!r}") from None


def _meaning(url: str, refused: urllib.error.HTTPError) -> Exception:
    """Each status as what a caller does about it."""
    said = refused.read(SAID_CHARS_MAX).decode("utf-8", "replace")
    text, code = f"{url} answered {refused.code}: {said}", f"HTTP-{refused.code}"
    delay = _seconds(refused.headers.get("Retry-After"))
    match refused.code:
        case 429:
            return NotNow(text, delay=delay, code=code)
        case 408 | 409 | 425:  # the request, or an earlier one with its key, may be under way
            return relet.Temporary(text, delay=delay, code=code)
        case status if status >= 500:
            return relet.Temporary(text, delay=delay, code=code)
        case _:
            return Declined(text, code=code)


def _seconds(retry_after: str | None) -> float | None:
    """Seconds to wait, asked for as a number or as a date; None leaves it to the policy."""
    if retry_after is None:
        return None
    try:
        wait = float(retry_after)
    except ValueError:
        try:
            at = parsedate_to_datetime(retry_after)
        except ValueError:
            return None
        # A date without a zone is in UTC.
        wait = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    return min(max(wait, 0.0), WAIT_S_MAX) if wait == wait else None  # noqa: PLR0124 - NaN is itself unequal
