"""reconcile, over every route."""

from relet.testing.conformance.reconcile import *  # noqa: F403 - the suite is collected here
