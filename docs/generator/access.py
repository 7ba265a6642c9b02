"""What keys of the service may be used for: scopes by role, and operations by scope."""

from __future__ import annotations

from docs.generator.markdown import code, table
from relet.core.access import NEEDS, SCOPES_OF, Role, Scope


def parts() -> dict[str, str]:
    """Roles with their scopes, and scopes with the operations that need them."""
    return {
        "roles": table(
            ["role", *(code(scope) for scope in Scope)],
            [[code(role), *("yes" if scope in SCOPES_OF[role] else "" for scope in Scope)] for role in Role],
        ),
        "scopes": table(["scope", "operations that need it"], [[code(scope), _operations(scope)] for scope in Scope]),
    }


def _operations(scope: Scope) -> str:
    if scope is Scope.AUDIT:
        return "none of the catalog: reading the audit log"
    if scope is Scope.ADMIN:
        return "none of the catalog: looking after the service itself"
    return ", ".join(code(name) for name, needed in NEEDS.items() if needed is scope)
