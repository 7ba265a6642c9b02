"""transaction, over every route."""

from relet.testing.conformance.transaction import *  # noqa: F403 - the suite is collected here
