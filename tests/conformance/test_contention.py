"""contention, over every route."""

from relet.testing.conformance.contention import *  # noqa: F403 - the suite is collected here
