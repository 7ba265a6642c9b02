"""What a run over PostgreSQL leaves out, always the same; nothing with `RELET_TEST_MATRIX=all`.

A list of routes of the conformance suite in its place, as in `postgres-15,postgres-bare`, runs it over those alone,
and `quick` each of its tests over one of all routes.
"""

import os
import zlib

MATRIX = (os.environ.get("RELET_TEST_MATRIX") or "one").split(",")
RUNS_ALL = MATRIX == ["all"]
IS_QUICK = MATRIX == ["quick"]


def number(test, n):
    """A number below `n` that belongs to the name of a test."""
    return zlib.crc32(test.encode()) % n


def leave_out(config, items, is_left_out):
    """Take tests from those that were collected, and have them counted as such."""
    left_out = {item for item in items if is_left_out(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
