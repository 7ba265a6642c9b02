"""The `relet` command: runs one command, and says how it ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from relet.cli.exits import Exit
from relet.cli.menu import NobodyReadsError, program
from relet.cli.session import Session, tell
from relet.core.errors import Error

COMPLETE_VARIABLE: Final = "_RELET_COMPLETE"
USAGE_CODE: Final = "RELET-USAGE"


def run(args: Sequence[str]) -> int:
    """Run one command to its exit code; nothing but a fault of relet's own is raised."""
    session = Session()
    try:
        ended = program().main(list(args), "relet", COMPLETE_VARIABLE, standalone_mode=False, obj=session)
        click.echo(nl=False)  # flushes
    except (NobodyReadsError, BrokenPipeError):
        return _nobody_reads()
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except click.ClickException as wrong:
        return _misused(wrong, args)
    except (Error, TimeoutError) as error:
        return _refused(error, session, args)
    return int(ended or 0)


def _nobody_reads() -> int:
    # Whoever reads has seen enough; that is no failure. The interpreter must not flush to it again at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.OK


def _misused(wrong: click.ClickException, args: Sequence[str]) -> int:
    context = getattr(wrong, "ctx", None)
    path = context.command_path if context is not None else "relet"
    message = f"{wrong.format_message()} → {path} --help"
    tell(_asks_for_json(args), {"code": USAGE_CODE, "message": message, "detail": {}})
    return Exit.USAGE


def _refused(error: Error | TimeoutError, session: Session, args: Sequence[str]) -> int:
    from relet.cli.faults import exit_of, told

    tell(_asks_for_json(args), told(error, session.place))
    return exit_of(error)


def _asks_for_json(args: Sequence[str]) -> bool:
    """Is an error to be told in JSON, also when it is the settings that are wrong."""
    from relet.cli.settings import YES

    own = list(args[: args.index("--")] if "--" in args else args)
    return "--json" in own or os.environ.get("RELET_JSON", "").lower() in YES - {""}
