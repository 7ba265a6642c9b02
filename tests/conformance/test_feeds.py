"""feeds, over every route."""

from relet.testing.conformance.feeds import *  # noqa: F403 - the suite is collected here
