"""cancel, over every route."""

from relet.testing.conformance.cancel import *  # noqa: F403 - the suite is collected here
