"""result, over every route."""

from relet.testing.conformance.result import *  # noqa: F403 - the suite is collected here
