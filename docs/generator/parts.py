"""All generated parts by name, in one explicit list of makers."""

from __future__ import annotations

from docs.generator import access, api, commands, failures, faults, maxima, operations, promised, states

MAKERS = (
    states.parts, operations.parts, api.parts, commands.parts, failures.parts, maxima.parts, faults.parts,
    promised.parts, access.parts,
)  # fmt: skip


def all_parts() -> dict[str, str]:
    """Every part that the pages must hold."""
    made: dict[str, str] = {}
    for make in MAKERS:
        for name, text in make().items():
            if name in made:
                raise LookupError(f"two makers make {name!r}")
            made[name] = text
    return made
