"""bulk, over every route."""

from relet.testing.conformance.bulk import *  # noqa: F403 - the suite is collected here
