"""steps, over every route."""

from relet.testing.conformance.steps import *  # noqa: F403 - the suite is collected here
