"""exclusive, over every route."""

from relet.testing.conformance.exclusive import *  # noqa: F403 - the suite is collected here
