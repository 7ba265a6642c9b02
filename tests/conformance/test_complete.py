"""complete, over every route."""

from relet.testing.conformance.complete import *  # noqa: F403 - the suite is collected here
