"""`relet`: the list of commands, and how each run ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from relet.cli.exits import Exit
from relet.cli.options import options_everywhere, write_options
from relet.cli.session import Session, tell
from relet.core.errors import Error

COMPLETE_VARIABLE: Final = "_RELET_COMPLETE"
USAGE_CODE: Final = "RELET-USAGE"


class Entry(NamedTuple):
    """A command: its name, the module that has it under `attribute`, the heading it is listed under."""

    name: str
    module: str
    attribute: str
    heading: str


TASKS: Final = "Tasks"
LEASES: Final = "Leases, for shell agents"
WORK: Final = "Work"
OPERATIONS: Final = "Operations"
OTHER: Final = "Other"
_HERE: Final = "relet.cli.commands"

COMMANDS: Final = (
    Entry("demo", "relet.cli.demo", "demo", WORK),
    Entry("worker", f"{_HERE}.worker", "worker", WORK),
    Entry("exec", f"{_HERE}.program", "program", WORK),
    Entry("submit", f"{_HERE}.submit", "submit", TASKS),
    Entry("ls", f"{_HERE}.ls", "ls", TASKS),
    Entry("show", f"{_HERE}.show", "show", TASKS),
    Entry("result", f"{_HERE}.result", "result", TASKS),
    Entry("history", f"{_HERE}.history", "history", TASKS),
    Entry("watch", f"{_HERE}.history", "watch", TASKS),
    Entry("stats", f"{_HERE}.stats", "stats", TASKS),
    Entry("rejections", f"{_HERE}.rejections", "rejections", TASKS),
    Entry("claim", f"{_HERE}.claim", "claim", LEASES),
    Entry("renew", f"{_HERE}.renew", "renew", LEASES),
    Entry("save", f"{_HERE}.checkpoint", "save", LEASES),
    Entry("load", f"{_HERE}.checkpoint", "load", LEASES),
    Entry("complete", f"{_HERE}.ending", "complete", LEASES),
    Entry("fail", f"{_HERE}.ending", "fail", LEASES),
    Entry("release", f"{_HERE}.ending", "release", LEASES),
    Entry("cancel", f"{_HERE}.cancel", "cancel", OPERATIONS),
    Entry("requeue", f"{_HERE}.cancel", "requeue", OPERATIONS),
    Entry("pause", f"{_HERE}.pause", "pause", OPERATIONS),
    Entry("unpause", f"{_HERE}.pause", "unpause", OPERATIONS),
    Entry("sweep", f"{_HERE}.sweep", "sweep", OPERATIONS),
    Entry("adopt", f"{_HERE}.adopt", "adopt", OPERATIONS),
    Entry("config", f"{_HERE}.config", "config", OTHER),
    Entry("completion", f"{_HERE}.completion", "completion", OTHER),
    Entry("help", f"{_HERE}.help", "help_", OTHER),
)
"""Every command, under its heading; a module is imported when its command is run, completed or described."""
BY_NAME: Final = {entry.name: entry for entry in COMMANDS}


class Program(click.Group):
    """The group of all commands."""

    everywhere: list[click.Parameter]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the shape is click's
        return list(BY_NAME)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        if (entry := BY_NAME.get(cmd_name)) is None:
            return None
        command: click.Command = getattr(import_module(entry.module), entry.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in BY_NAME and not args[0].startswith("-"):
            ctx.fail(unknown_command(args[0]))
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)
        for heading in dict.fromkeys(entry.heading for entry in COMMANDS):
            names = [entry.name for entry in COMMANDS if entry.heading == heading]
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name, command.get_short_help_str(80)) for name, command in commands if command])


def unknown_command(name: str) -> str:
    """What to say of a command that does not exist."""
    import difflib

    near = difflib.get_close_matches(name, BY_NAME, 1)
    return f"There is no command {name!r}." + (f" Did you mean {near[0]!r}?" if near else "")


def _version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from relet import __version__

        click.echo(f"relet {__version__}")
        ctx.exit()


def program() -> Program:
    """The command line as click knows it."""
    everywhere = options_everywhere()
    version = click.Option(
        ["--version"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_version,
        help="The version of relet.",
    )
    group = Program(
        "relet", params=[version, *everywhere], no_args_is_help=True,
        help="Leases, heartbeats and fencing tokens for long-running agent work.",
        epilog="\b\nHelp on one command: relet help COMMAND\nWhat exit codes mean: relet help exit-codes",
    )  # fmt: skip
    group.everywhere = everywhere
    return group


def run(args: Sequence[str]) -> int:
    """Run one command to its exit code; nothing but a fault of relet's own is raised."""
    session = Session()
    try:
        ended = program().main(list(args), "relet", COMPLETE_VARIABLE, standalone_mode=False, obj=session)
        sys.stdout.flush()
    except BrokenPipeError:
        return _nobody_reads()
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as wrong:
        click.echo(wrong.format_message(), err=True)
        return Exit.USAGE
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


def main() -> Any:
    """The entry point of the `relet` command."""
    sys.exit(run(sys.argv[1:]))
