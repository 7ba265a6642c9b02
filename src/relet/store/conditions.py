"""What an operator is told of the work in a store: of all of its tenants, whichever the engine."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec.structs import replace

from relet.core import limits
from relet.core.doctor.facts import Facts
from relet.core.rules.condition import AskCondition
from relet.core.rules.tenants import Tenant


class Open(Protocol):
    """A store, as much of it as is asked here."""

    def tenants(self, after: str, limit: int) -> list[Tenant]: ...
    def call_of(self, tenant: str, ask: Any) -> Any: ...


def with_work(store: Open, facts: Facts) -> Facts:
    """The facts, with the condition of each tenant that is looked at, and the names of the others."""
    names = [one.name for one in store.tenants("", limits.DOCTOR_TENANTS + 1)]
    seen = [facts.tenant] if facts.alone or not names else names[: limits.DOCTOR_TENANTS]
    return replace(
        facts, work=[store.call_of(name, AskCondition()) for name in seen],
        others=[name for name in names if name not in seen],
    )  # fmt: skip
