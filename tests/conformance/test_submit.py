"""submit, over every route."""

from relet.testing.conformance.submit import *  # noqa: F403 - the suite is collected here
