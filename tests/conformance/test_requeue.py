"""requeue, over every route."""

from relet.testing.conformance.requeue import *  # noqa: F403 - the suite is collected here
