"""renew, over every route."""

from relet.testing.conformance.renew import *  # noqa: F403 - the suite is collected here
