"""All mutants: which promise, what is broken, and the named test that goes red."""

from __future__ import annotations

from typing import Final

from tests.mutants.durable import WORK
from tests.mutants.expiry import EXPIRY
from tests.mutants.fairness import FAIRNESS
from tests.mutants.holding import HOLDING
from tests.mutants.processes import PROCESSES
from tests.mutants.servers import SERVERS
from tests.mutants.service import SERVICE
from tests.mutants.sharing import SHARING
from tests.mutants.storage import STORAGE
from tests.mutants.telling import TELLING
from tests.mutants.upkeep import UPKEEP

MUTANTS: Final = (
    *HOLDING, *EXPIRY, *STORAGE, *WORK, *FAIRNESS, *SHARING, *TELLING, *UPKEEP, *PROCESSES, *SERVERS, *SERVICE,
)  # fmt: skip
