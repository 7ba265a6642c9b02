"""claim_task, over every route."""

from relet.testing.conformance.claim_task import *  # noqa: F403 - the suite is collected here
