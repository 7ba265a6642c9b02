"""shares, over every route."""

from relet.testing.conformance.shares import *  # noqa: F403 - the suite is collected here
