"""tenants, over every route."""

from relet.testing.conformance.tenants import *  # noqa: F403 - the suite is collected here
