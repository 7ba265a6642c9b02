"""How often, and how far apart, something that fails is tried."""

from __future__ import annotations

from typing import Any

import msgspec

from relet.core import border, limits
from relet.core.border import invalid, shown
from relet.core.rules.settle import backoff_ms, jittered


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often, and how far apart, a failing task or step is tried; None leaves a knob to the queue and the default.

    The wait doubles from `base` up to `cap`, with up to a fifth added at random. `max_losses` is for tasks alone.
    """

    max_attempts: int | None = None
    max_losses: int | None = None
    base: Any = None
    cap: Any = None


class Tries:
    """The tries of one step, made where its handler runs. Raises `Invalid` for a policy that is none."""

    def __init__(self, policy: RetryPolicy | None, seed: int) -> None:
        if policy is not None and not isinstance(policy, RetryPolicy):
            raise invalid("retry", f"{shown(policy)} is not a RetryPolicy")
        given = policy or RetryPolicy(max_attempts=1)
        most = limits.MAX_ATTEMPTS if given.max_attempts is None else given.max_attempts
        self._most = border.whole("max_attempts", most, least=1, most=limits.STEP_ATTEMPTS_MAX)
        base_ms, cap_ms = border.maybe_duration_ms("base", given.base), border.maybe_duration_ms("cap", given.cap)
        self._base_ms = limits.BACKOFF_BASE_MS if base_ms is None else base_ms
        self._cap_ms = limits.BACKOFF_CAP_MS if cap_ms is None else cap_ms
        self._seed = seed
        self._made = 0

    def next_in_s(self, asked_s: float | None) -> float | None:
        """Seconds until the next try after one that failed; None when that was the last."""
        self._made += 1
        if self._made >= self._most:
            return None
        if asked_s is not None:
            return asked_s
        return jittered(backoff_ms(self._made, self._base_ms, self._cap_ms), self._seed + self._made) / 1_000
