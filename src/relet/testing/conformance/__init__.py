"""One suite, by verb, that every engine and every client must pass; it knows nothing of either.

An engine or a client proves itself by running it. Give pytest a fixture `route` that builds a `route.Route`, and
collect the tests of each verb in a file of your own, so that a failure is named after the verb:

    # test_claim.py
    from relet.testing.conformance.claim import *

There are no capabilities to declare and nothing to leave out: what a route cannot do, it does not pass.
"""

from __future__ import annotations

from typing import Final

MODULES: Final = (
    "submit",
    "claim",
    "claim_task",
    "exclusive",
    "knobs",
    "shares",
    "bounds",
    "guard",
    "renew",
    "save",
    "complete",
    "fail",
    "release",
    "cancel",
    "bulk",
    "requeue",
    "sweep",
    "prune",
    "inspect",
    "advise",
    "feeds",
    "result",
    "repeat",
    "park",
    "decide",
    "signal",
    "steps",
    "checkpoints",
    "artifacts",
    "effects",
    "reconcile",
    "transaction",
    "tenants",
    "contention",
    "bad_input",
    "bad_payload",
    "bad_work",
)
"""Every module that holds tests; `tests/conformance` has a file for each."""
