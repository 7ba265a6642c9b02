"""knobs, over every route."""

from relet.testing.conformance.knobs import *  # noqa: F403 - the suite is collected here
