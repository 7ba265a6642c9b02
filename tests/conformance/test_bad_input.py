"""bad_input, over every route."""

from relet.testing.conformance.bad_input import *  # noqa: F403 - the suite is collected here
