"""The list of commands, each loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from relet.cli.exits import Exit
from relet.cli.options import options_everywhere, write_options


class Entry(NamedTuple):
    """A command: its name, the module that has it under `attribute`, the heading it is listed under."""

    name: str
    module: str
    attribute: str
    heading: str


TASKS: Final = "Tasks"
LEASES: Final = "Leases, for shell agents"
WORK: Final = "Work"
ANSWERS: Final = "Answers of people"
OPERATIONS: Final = "Operations"
OTHER: Final = "Other"
_HERE: Final = "relet.cli.commands"

COMMANDS: Final = (
    Entry("demo", "relet.cli.demo", "demo", WORK),
    Entry("worker", f"{_HERE}.worker", "worker", WORK),
    Entry("exec", f"{_HERE}.program", "program", WORK),
    Entry("serve", f"{_HERE}.serve", "serve", WORK),
    Entry("submit", f"{_HERE}.submit", "submit", TASKS),
    Entry("ls", f"{_HERE}.ls", "ls", TASKS),
    Entry("show", f"{_HERE}.show", "show", TASKS),
    Entry("result", f"{_HERE}.result", "result", TASKS),
    Entry("history", f"{_HERE}.history", "history", TASKS),
    Entry("watch", f"{_HERE}.history", "watch", TASKS),
    Entry("steps", f"{_HERE}.steps", "steps", TASKS),
    Entry("artifacts", f"{_HERE}.artifacts", "artifacts", TASKS),
    Entry("cat", f"{_HERE}.cat", "cat", TASKS),
    Entry("stats", f"{_HERE}.stats", "stats", TASKS),
    Entry("rejections", f"{_HERE}.rejections", "rejections", TASKS),
    Entry("claim", f"{_HERE}.claim", "claim", LEASES),
    Entry("renew", f"{_HERE}.renew", "renew", LEASES),
    Entry("save", f"{_HERE}.checkpoint", "save", LEASES),
    Entry("load", f"{_HERE}.checkpoint", "load", LEASES),
    Entry("attach", f"{_HERE}.attach", "attach", LEASES),
    Entry("progress", f"{_HERE}.attach", "progress", LEASES),
    Entry("park", f"{_HERE}.park", "park", LEASES),
    Entry("answer", f"{_HERE}.park", "answer", LEASES),
    Entry("complete", f"{_HERE}.ending", "complete", LEASES),
    Entry("fail", f"{_HERE}.ending", "fail", LEASES),
    Entry("release", f"{_HERE}.ending", "release", LEASES),
    Entry("waits", f"{_HERE}.waits", "waits", ANSWERS),
    Entry("decide", f"{_HERE}.decide", "decide", ANSWERS),
    Entry("signal", f"{_HERE}.decide", "signal", ANSWERS),
    Entry("effects", f"{_HERE}.effects", "effects", ANSWERS),
    Entry("reconcile", f"{_HERE}.effects", "reconcile", ANSWERS),
    Entry("cancel", f"{_HERE}.cancel", "cancel", OPERATIONS),
    Entry("requeue", f"{_HERE}.cancel", "requeue", OPERATIONS),
    Entry("pause", f"{_HERE}.pause", "pause", OPERATIONS),
    Entry("unpause", f"{_HERE}.pause", "unpause", OPERATIONS),
    Entry("limits", f"{_HERE}.limits", "limits", OPERATIONS),
    Entry("sweep", f"{_HERE}.sweep", "sweep", OPERATIONS),
    Entry("doctor", f"{_HERE}.doctor", "doctor", OPERATIONS),
    Entry("tenants", f"{_HERE}.tenants", "tenants", OPERATIONS),
    Entry("token", f"{_HERE}.token", "token", OPERATIONS),
    Entry("audit", f"{_HERE}.audit", "audit", OPERATIONS),
    Entry("advise", f"{_HERE}.advise", "advise", OPERATIONS),
    Entry("adopt", f"{_HERE}.adopt", "adopt", OPERATIONS),
    Entry("prune", f"{_HERE}.prune", "prune", OPERATIONS),
    Entry("verify", f"{_HERE}.verify", "verify", OPERATIONS),
    Entry("backup", f"{_HERE}.backup", "backup", OPERATIONS),
    Entry("restore", f"{_HERE}.backup", "restore", OPERATIONS),
    Entry("copy", f"{_HERE}.copy", "copy", OPERATIONS),
    Entry("migrate", f"{_HERE}.migrate", "migrate", OPERATIONS),
    Entry("crashtest", f"{_HERE}.crashtest", "crashtest", OTHER),
    Entry("config", f"{_HERE}.config", "config", OTHER),
    Entry("completion", f"{_HERE}.completion", "completion", OTHER),
    Entry("help", f"{_HERE}.help", "help_", OTHER),
)
"""Every command, under its heading; a module is imported when its command is run, completed or described."""
BY_NAME: Final = {entry.name: entry for entry in COMMANDS}
SUMMARY_CHARS: Final = 80


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
                formatter.write_dl(
                    [(name, command.get_short_help_str(SUMMARY_CHARS)) for name, command in commands if command]
                )

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as gone:
            # Under its own name, since click ends the process with code 1 at the other one.
            raise NobodyReadsError from gone


class NobodyReadsError(Exception):
    """Whoever read what is printed has seen enough."""


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


def _alone() -> None:
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(Exit.USAGE)


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
        "relet", params=[version, *everywhere], callback=_alone, invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Leases, heartbeats and fencing tokens for long-running agent work.",
        epilog="\b\nHelp on one command: relet help COMMAND\nWhat exit codes mean: relet help exit-codes",
    )  # fmt: skip
    group.everywhere = everywhere
    return group
