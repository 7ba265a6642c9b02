"""artifacts, over every route."""

from relet.testing.conformance.artifacts import *  # noqa: F403 - the suite is collected here
