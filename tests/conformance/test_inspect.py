"""inspect, over every route."""

from relet.testing.conformance.inspect import *  # noqa: F403 - the suite is collected here
