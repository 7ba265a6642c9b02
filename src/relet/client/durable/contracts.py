"""What the other side of an effect promises about a repeated call; declared by the program, kept with the receipt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relet.core import border
from relet.core.border import invalid, shown
from relet.core.work import Contract, ContractKind

Check = Callable[..., Any]
"""`check(payload, effect)`: asks the other side. A receipt when it has happened, None when it has not."""


class Declared:
    """Root of the contracts, as a program declares them.

    `check` is asked when a try's outcome is unknown and repeating it is not allowed.
    """

    kind: ContractKind
    repeatable = False
    """The other side takes a repeated call for the same one."""

    def __init__(self, *, check: Check | None = None) -> None:
        if check is not None and not callable(check):
            raise invalid("check", f"{shown(check)} is no function; give check(payload, effect)")
        self.check = check
        self.retention_ms: int | None = None
        self.settles_ms = 0

    def stored(self) -> Contract:
        """In the form in which it is kept."""
        return Contract(
            kind=self.kind, retention_ms=self.retention_ms, settles_ms=self.settles_ms, checked=self.check is not None
        )


class Keyed(Declared):
    """It remembers the idempotency key for `retention`, and answers a repeated call as it did the first."""

    kind = ContractKind.KEYED
    repeatable = True

    def __init__(self, retention: Any, *, check: Check | None = None) -> None:
        super().__init__(check=check)
        self.retention_ms = border.duration_ms("retention", retention, least=1)


class Natural(Declared):
    """The call sets an absolute state, such as PUT or DELETE: once and twice are the same."""

    kind = ContractKind.NATURAL
    repeatable = True


class Conditional(Declared):
    """The call carries a condition on what was there (If-Match). A refusal of a *repeated* call is ambiguous.

    In a repeated call (`effect.repeated`) read what is there now, and compare it with what you wrote.
    """

    kind = ContractKind.CONDITIONAL
    repeatable = True


class Queryable(Declared):
    """It can be asked whether a call has happened, by the key that went with it.

    "Not found" counts only once the last try can no longer arrive: its own timeout, then `max_in_flight`, then
    `visibility_delay`.
    """

    kind = ContractKind.QUERYABLE

    def __init__(self, check: Check, *, visibility_delay: Any = 0, max_in_flight: Any = 0) -> None:
        if check is None:
            raise invalid("check", "is missing; a queryable effect is asked about by check(payload, effect)")
        super().__init__(check=check)
        self.settles_ms = border.duration_ms("visibility_delay", visibility_delay)
        self.settles_ms += border.duration_ms("max_in_flight", max_in_flight)


class Opaque(Declared):
    """Nothing is promised, the default: an unknown outcome waits for a person (or for `check`)."""

    kind = ContractKind.OPAQUE


def declared(value: Any) -> Declared:
    """A contract, as it was given or by its class. Raises `Invalid`."""
    made = value() if isinstance(value, type) and value in (Natural, Conditional, Opaque) else value
    if not isinstance(made, Declared) or type(made) is Declared:
        raise invalid(
            "contract",
            f"{shown(value)} is no contract; give relet.Keyed(retention=…), Natural(), Conditional(), "
            "Queryable(check) or Opaque()",
        )
    return made
