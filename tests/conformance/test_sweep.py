"""sweep, over every route."""

from relet.testing.conformance.sweep import *  # noqa: F403 - the suite is collected here
