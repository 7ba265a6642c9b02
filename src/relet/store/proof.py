"""Are handles what this store gave out: many asked about together."""

from __future__ import annotations

import hmac

from relet.core.model import Handle
from relet.store.sql import SqlTx


def all_proven(tx: SqlTx, handles: list[Handle]) -> bool:
    """Is every secret right; all of them are compared as one text, since no secret of ours holds the mark between."""
    secret = tx.run.secret
    try:
        made = "\n".join([secret(handle.token, handle.task_id) for handle in handles])
    except OverflowError:
        return False
    given = "\n".join([handle.secret for handle in handles])
    return given.isascii() and hmac.compare_digest(made, given)
