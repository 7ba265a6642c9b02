"""The bars that are measured, one file each, in the order of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.bars import Bar, Result
from bench.cases import (
    claim_at_depth,
    claim_complete,
    claim_next,
    four_processes,
    group_commit,
    http_renew,
    import_and_memory,
    peers,
    postgres_at_depth,
    postgres_claim_complete,
    postgres_renewals,
    postgres_worker,
    renew_many,
    shell_renew,
    steps,
    takeover,
    wake,
    worker,
)
from bench.measure import Ground


@dataclass(frozen=True)
class Case:
    """One file of bars and how to measure them; `name` is what `--only` takes."""

    name: str
    bars: tuple[Bar, ...]
    measure: Callable[[Ground], list[Result]]


MODULES = (
    claim_complete, claim_next, worker, peers, four_processes, group_commit, renew_many, claim_at_depth,
    wake, takeover, postgres_claim_complete, postgres_worker, postgres_renewals, postgres_at_depth, http_renew,
    shell_renew, import_and_memory, steps,
)  # fmt: skip
CASES = tuple(Case(module.NAME, module.BARS, module.measure) for module in MODULES)
