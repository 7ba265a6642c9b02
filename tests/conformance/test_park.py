"""park, over every route."""

from relet.testing.conformance.park import *  # noqa: F403 - the suite is collected here
