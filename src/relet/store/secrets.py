"""What a store signs with: secrets that prove leases, and digests of payloads that cannot be guessed from."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Final

SECRETS_KEPT: Final = 16_384
"""As many leases as one process may well keep: each is asked about at every beat."""
SECRETS_SERVED: Final = 2_048
"""Of a service, past which those of a whole fleet go: one that is made anew costs a thousandth of its request."""


class Secrets:
    """One store's key, in use; equal keys make equal secrets, whatever the engine."""

    def __init__(self, key: bytes, kept: int = SECRETS_KEPT) -> None:
        self._key = key
        self._keyed = hashlib.blake2b(key=key, digest_size=16)
        self.secret = lru_cache(maxsize=kept)(self._secret)
        """What proves a token of a task. The one that was given out a moment ago is often asked for next."""

    def _secret(self, token: int, task_id: str) -> str:
        made = self._keyed.copy()  # half the price of taking the key in each time
        made.update(token.to_bytes(8, "big") + task_id.encode("utf-8", "surrogatepass"))
        return made.hexdigest()

    def fingerprint(self, text: str) -> str:
        """Keyed, so that a payload of few possible values cannot be guessed from it."""
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()
