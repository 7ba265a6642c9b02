"""fail, over every route."""

from relet.testing.conformance.fail import *  # noqa: F403 - the suite is collected here
