"""Where the process of a command starts and ends: it lives for a moment, and shell hooks feel its start-up time."""

from __future__ import annotations

import gc
import sys
from typing import Final, NoReturn

MADE: Final = 20_000
"""After how many new objects a command is searched for garbage: more than a short one makes."""


def main() -> NoReturn:
    """The entry point of the `relet` command.

    What is loaded stays to the end, so it is not searched for garbage: neither while it is loaded nor afterwards,
    which is a sixth of the time that a short command takes. A command that stays is searched when it has made much.
    """
    gc.disable()
    from relet.cli.main import run

    gc.freeze()
    gc.set_threshold(MADE)
    gc.enable()
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)
