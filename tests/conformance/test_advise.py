"""advise, over every route."""

from relet.testing.conformance.advise import *  # noqa: F403 - the suite is collected here
