"""guard, over every route."""

from relet.testing.conformance.guard import *  # noqa: F403 - the suite is collected here
