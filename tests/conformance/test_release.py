"""release, over every route."""

from relet.testing.conformance.release import *  # noqa: F403 - the suite is collected here
