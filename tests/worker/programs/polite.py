"""A program under exec that leaves a result when it is asked to end."""

import os
import signal
import sys
from pathlib import Path


def leave(*_):
    Path(os.environ["RELET_RESULT_FILE"]).write_text('"on the way out"', encoding="utf-8")
    sys.exit(0)


signal.signal(signal.SIGTERM, leave)
sys.stdout.write("ready\n")
sys.stdout.flush()
signal.pause()
