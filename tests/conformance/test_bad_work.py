"""bad_work, over every route."""

from relet.testing.conformance.bad_work import *  # noqa: F403 - the suite is collected here
