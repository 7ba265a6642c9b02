"""repeat, over every route."""

from relet.testing.conformance.repeat import *  # noqa: F403 - the suite is collected here
