"""bad_payload, over every route."""

from relet.testing.conformance.bad_payload import *  # noqa: F403 - the suite is collected here
