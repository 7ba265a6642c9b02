"""An error as HTTP tells it: a status, and a problem document (RFC 9457) with the facts of the error in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from relet.core.errors import (
    FAMILIES,
    Conflict,
    Error,
    Forbidden,
    Invalid,
    LeaseLost,
    NotFound,
    OutcomeUnknown,
    Refused,
    StaleToken,
    TaskCancelled,
    TaskFailed,
    Unavailable,
    UpgradeRequired,
)
from relet.core.redaction import SECRETS

AFTER_S: Final = "after_s"
"""The fact that says how soon something may be asked again, in whole seconds, as `Retry-After` does."""
FREE_TEXTS: Final = frozenset({"engine", "error", "key", "place", "refusals"})
"""Facts in words of others, which may quote anything; `key` is what was given as its name, and may be a whole key.

All the rest is what programs compare, and rebuild the error from.
"""
MEDIA_TYPE: Final = "application/problem+json"
FAULT: Final = "RELET-FAULT"
TOO_LARGE: Final = "RELET-TOO-LARGE"
NO_CREDENTIAL: Final = "RELET-NO-CREDENTIAL"
TOO_MANY: Final = "RELET-TOO-MANY"
SLOW: Final = "RELET-SLOW"
WRONG_HOST: Final = "RELET-WRONG-HOST"
WRONG_METHOD: Final = "RELET-WRONG-METHOD"
MEDIA: Final = "RELET-MEDIA-TYPE"
STATUS_OF_CODE: Final = {
    NO_CREDENTIAL: 401, WRONG_METHOD: 405, SLOW: 408, TOO_LARGE: 413, MEDIA: 415, WRONG_HOST: 421, TOO_MANY: 429,
    FAULT: 500,
    "RELET-FULL": 507,
}  # fmt: skip
"""Where HTTP has a word of its own for it."""
STATUS_OF_FAMILY: Final[dict[type[Error], int]] = {
    Invalid: 400, Forbidden: 403, NotFound: 404, Conflict: 409, UpgradeRequired: 409, LeaseLost: 410, StaleToken: 412,
    TaskFailed: 422, TaskCancelled: 422, Refused: 422, Unavailable: 503, OutcomeUnknown: 504, Error: 422,
}  # fmt: skip
"""410 for a lease that is gone and 504 for an outcome that nobody knows, so that a shell can tell them apart."""


TITLE_OF_CODE: Final = {TOO_MANY: "More was asked than may be asked at once"}
"""Where the family's says what this one is not."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the body. `detail` is the message; `facts` are those of the error, `field` among them."""

    type: str
    title: str
    status: int
    detail: str
    family: str
    code: str
    retryable: bool
    facts: dict[str, Any] = {}


_DECODER: Final = msgspec.json.Decoder(Problem)


def problem_of(error: Error) -> Problem:
    """An error as a problem document, without what is secret."""
    family = next(kind for kind in FAMILIES if isinstance(error, kind))
    return Problem(
        type=f"urn:relet:{error.code}", title=TITLE_OF_CODE.get(error.code) or _title(family),
        detail=SECRETS.text(error.message),
        family=family.__name__, status=STATUS_OF_CODE.get(error.code, STATUS_OF_FAMILY[family]), code=error.code,
        retryable=error.retryable, facts=facts_told(error.detail),
    )  # fmt: skip


def facts_told(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an error as they are, its free texts without what is secret."""
    return {name: SECRETS.shown(value) if name in FREE_TEXTS else value for name, value in detail.items()}


def error_in(body: bytes) -> Error | None:
    """The error of a problem document of ours; None for any other body, whoever wrote it."""
    try:
        found = _DECODER.decode(body)
    except msgspec.MsgspecError:
        return None
    # A family that only a newer relet knows is an error all the same.
    family = next((kind for kind in FAMILIES if kind.__name__ == found.family), Error)
    try:
        return family(found.detail, code=found.code, **found.facts)
    except (TypeError, ValueError):
        return None


def _title(family: type[Error]) -> str:
    """The first thing that its docstring says."""
    return re.split(r"[.;:]\s", f"{family.__doc__} ")[0]
