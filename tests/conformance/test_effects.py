"""effects, over every route."""

from relet.testing.conformance.effects import *  # noqa: F403 - the suite is collected here
