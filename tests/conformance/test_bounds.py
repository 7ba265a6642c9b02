"""bounds, over every route."""

from relet.testing.conformance.bounds import *  # noqa: F403 - the suite is collected here
