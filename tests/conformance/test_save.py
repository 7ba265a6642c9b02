"""save, over every route."""

from relet.testing.conformance.save import *  # noqa: F403 - the suite is collected here
