"""signal, over every route."""

from relet.testing.conformance.signal import *  # noqa: F403 - the suite is collected here
