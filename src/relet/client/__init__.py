"""How a program asks: blocking and awaiting clients, the lease, the keeper of heartbeats."""

import logging

# A library says nothing unless the program wants to hear it.
logging.getLogger("relet").addHandler(logging.NullHandler())
