"""claim, over every route."""

from relet.testing.conformance.claim import *  # noqa: F403 - the suite is collected here
