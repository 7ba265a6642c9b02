"""What every fence asks of a resource and a token, and how each of them refuses."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from relet.core import border, limits
from relet.core.errors import StaleToken, Unavailable
from relet.core.holding import check_held
from relet.core.model import LostReason

_PLAIN = re.compile(rb"[^A-Za-z0-9_-]")
_DIGEST_CHARS: Final = 32


def admitted(resource: object, token: object) -> tuple[str, int]:
    """Both as every fence takes them: a name, and a number that a store can have granted."""
    name = border.name("resource", resource)
    return name, border.whole("token", token, least=1, most=limits.TOKEN_MAX)


def held(resource: object, token: object) -> tuple[str, int]:
    """As `admitted`, from a holder: it must still trust its lease. Raises `LeaseLost`.

    The target cannot tell a holder that was frozen past its deadline from one that holds, until somebody has raised.
    """
    name, number = admitted(resource, token)
    check_held(number)
    return name, number


def stale(where: str, resource: str, token: int, current: int) -> StaleToken:
    """The refusal of a token that is smaller than one that was seen."""
    return StaleToken(
        f"{where}: {resource!r} has seen token {current}, yours is {token}: the task has passed to a later holder. "
        "Nothing was written; stop this work and discard it → claim again if you want to go on",
        reason=LostReason.SUPERSEDED, token=token, current_token=current, resource=resource,
    )  # fmt: skip


def busy(where: str, resource: str, patience_ms: int, holder: str) -> Unavailable:
    """Somebody keeps the fence locked: the wait has an end, and says who it was for."""
    return Unavailable(
        f"{where}: {resource!r} stayed locked for {patience_ms / 1_000:g} s by {holder}. Nothing was written; try "
        "again, and if it lasts, end that process: its locks end with it",
        code="RELET-FENCE-BUSY", resource=resource,
    )  # fmt: skip


def undone(where: str, wrong: Exception) -> Unavailable:
    """The target failed before anything of ours was there to stay."""
    return Unavailable(
        f"{where} failed ({str(wrong).strip() or type(wrong).__name__}); nothing was written, try again",
        code="RELET-FENCE-TARGET", engine=f"{type(wrong).__name__}: {wrong}",
    )  # fmt: skip


def spelled(resource: str) -> str:
    """A resource as one part of a path, of a key or of a ref: letters, digits, `_`, `-`, the rest as `=2F`.

    What would be too long is cut, and told apart by a digest.
    """
    text = _PLAIN.sub(lambda found: b"=%02X" % found[0][0], resource.encode()).decode()
    if len(text) <= limits.FENCE_NAME_CHARS_MAX:
        return text
    digest = hashlib.sha256(resource.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{text[: limits.FENCE_NAME_CHARS_MAX - _DIGEST_CHARS - 1]}.{digest}"
