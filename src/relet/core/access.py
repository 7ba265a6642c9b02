"""Who may do what through the service: scopes, roles, the scope that each operation needs, and the text of a key.

A key is shown once. The store keeps its digest alone: 256 random bits need no slow one.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from typing import Final

import msgspec

from relet.core.errors import Forbidden
from relet.core.pasting import command


class Scope(StrEnum):
    """What a key may be used for."""

    READ = "read"
    SUBMIT = "submit"
    WORK = "work"
    APPROVE = "approve"
    OPERATE = "operate"
    AUDIT = "audit"
    ADMIN = "admin"


class Role(StrEnum):
    """What a key is made for, from the least of them to the one that has every scope."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    WORKER = "worker"
    APPROVER = "approver"
    OPERATOR = "operator"
    ADMIN = "admin"


SCOPES_OF: Final[dict[Role, frozenset[Scope]]] = {
    Role.VIEWER: frozenset([Scope.READ]),
    Role.SUBMITTER: frozenset([Scope.READ, Scope.SUBMIT]),
    # Work makes work: a run submits the tasks that it is split into.
    Role.WORKER: frozenset([Scope.READ, Scope.SUBMIT, Scope.WORK]),
    Role.APPROVER: frozenset([Scope.READ, Scope.APPROVE]),
    Role.OPERATOR: frozenset([Scope.READ, Scope.SUBMIT, Scope.APPROVE, Scope.OPERATE]),
    Role.ADMIN: frozenset(Scope),
}
"""The audit log is an admin's, and whose who was given its scope by name."""

NEEDS: Final[dict[str, Scope]] = {
    "submit": Scope.SUBMIT,
    "signal": Scope.SUBMIT,
    "claim": Scope.WORK,
    "check": Scope.WORK,
    "renew": Scope.WORK,
    "save": Scope.WORK,
    "load": Scope.WORK,
    "keep_step": Scope.WORK,
    "attach": Scope.WORK,
    "progress": Scope.WORK,
    "start_effect": Scope.WORK,
    "end_effect": Scope.WORK,
    "complete": Scope.WORK,
    "fail": Scope.WORK,
    "release": Scope.WORK,
    "park": Scope.WORK,
    "sweep": Scope.WORK,
    "glance": Scope.WORK,
    "look": Scope.WORK,
    "memo": Scope.WORK,
    "read_step": Scope.WORK,
    "attached": Scope.WORK,
    "decide": Scope.APPROVE,
    "reconcile": Scope.OPERATE,
    "cancel": Scope.OPERATE,
    "cancel_many": Scope.OPERATE,
    "requeue": Scope.OPERATE,
    "requeue_many": Scope.OPERATE,
    "prune": Scope.OPERATE,
    "set_queue": Scope.OPERATE,
    # It answers for all tenants at once: whoever may only read would learn what others have stored.
    "referenced": Scope.OPERATE,
    "task": Scope.READ,
    "tasks": Scope.READ,
    "history": Scope.READ,
    "changes": Scope.READ,
    "steps": Scope.READ,
    "checkpoints": Scope.READ,
    "artifacts": Scope.READ,
    "waits": Scope.READ,
    "effects": Scope.READ,
    "advise": Scope.READ,
    "stats": Scope.READ,
    "condition": Scope.READ,
    "queues": Scope.READ,
    "rejections": Scope.READ,
}
"""Every operation of the catalog by its name; one without a line here is one that nobody may call."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What a good key allows, for one tenant."""

    key_id: str
    name: str
    tenant: str
    role: Role
    scopes: frozenset[Scope]
    queues: list[str] | None = None
    """Those that it is bound to; None for all."""

    def has(self, queue: str) -> bool:
        """Is the key for this queue too."""
        return self.queues is None or queue in self.queues

    def refusal(self, operation: str, queues: Sequence[str]) -> Forbidden | None:
        """Why the key does not allow an operation on these queues; None where it does."""
        if (scope := NEEDS[operation]) not in self.scopes:
            return self.lacks(scope, operation)
        if (other := next((queue for queue in queues if not self.has(queue)), None)) is not None:
            way = command("token create", "NAME", options=("--role", str(self.role), "--queue", other))
            return self._refused(
                f"is for the queues {', '.join(self.queues or [])}, and not for {other}. Nothing was done. Ask for a "
                f"key that is for it → {way}",
                operation, queue=other,
            )  # fmt: skip
        return None

    def lacks(self, scope: Scope, operation: str) -> Forbidden | None:
        """Why the key does not allow what needs this scope; None where it does."""
        if scope in self.scopes:
            return None
        role = next(role for role in Role if scope in SCOPES_OF[role])
        return self._refused(
            f"has the role {self.role}, and {operation} needs the scope {scope}. Nothing was done. Ask for a key "
            f"that has it → relet token create NAME --role {role}",
            operation, scope=str(scope),
        )  # fmt: skip

    def _refused(self, why: str, operation: str, **detail: str) -> Forbidden:
        return Forbidden(
            f"the key {self.name} ({self.key_id}) {why}", operation=operation, key=self.key_id,
            role=str(self.role), **detail,
        )  # fmt: skip


KEY: Final = re.compile(r"lt_([0-9a-z]{12})_([0-9A-Za-z_-]{43})")
CHANCE_BYTES: Final = 40
"""How many random bytes a key is made of: 8 for its id, which is no secret, and 32 for what is."""
_ID_BYTES, _ID_CHARS = 8, 12
_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NOBODYS: Final = "0" * 64


def new_key(chance: bytes) -> tuple[str, str]:
    """The id and the text of a key of these random bytes."""
    assert len(chance) == CHANCE_BYTES, "as many as a key is made of"
    n, letters = int.from_bytes(chance[:_ID_BYTES], "big"), ""
    for _ in range(_ID_CHARS):
        n, letter = divmod(n, len(_LETTERS))
        letters += _LETTERS[letter]
    secret = urlsafe_b64encode(chance[_ID_BYTES:]).decode().rstrip("=")
    return letters, f"lt_{letters}_{secret}"


def id_in(text: str) -> str | None:
    """The id in what was shown as a key; None in what has not the form of one."""
    found = KEY.fullmatch(text)
    return None if found is None else found[1]


def digest_of(text: str) -> str:
    """What the store keeps of a key."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def is_key(text: str, digest: str | None) -> bool:
    """Is this the key of a digest, found in the same time whatever the answer; None where there is no such key."""
    return compare_digest(digest_of(text), digest or _NOBODYS)
