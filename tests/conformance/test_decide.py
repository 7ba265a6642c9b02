"""decide, over every route."""

from relet.testing.conformance.decide import *  # noqa: F403 - the suite is collected here
