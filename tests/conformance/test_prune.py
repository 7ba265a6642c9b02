"""prune, over every route."""

from relet.testing.conformance.prune import *  # noqa: F403 - the suite is collected here
