"""checkpoints, over every route."""

from relet.testing.conformance.checkpoints import *  # noqa: F403 - the suite is collected here
