"""The moments at which a run of the agent may be made to die or freeze: for its tests, and for `--kill-at`."""

import os
import signal
import threading

DIES_AT = "BROWSER_AGENT_DIES_AT"
STOPS_AT = "BROWSER_AGENT_STOPS_AT"


def reached(moment):
    """`begun:07-add`, `sent:…`, `acted:…`, `kept:…`: if the environment names this one, this process ends here."""
    for name, number in ((DIES_AT, signal.SIGKILL), (STOPS_AT, signal.SIGSTOP)):
        if (wanted := os.environ.get(name)) and moment.startswith(wanted):
            os.environ.pop(name)
            # To this very thread: one that is sent to the process may find another, and this one would go on a little.
            signal.pthread_kill(threading.get_ident(), number)
