"""How commands are declared: four options that work before and after the subcommand, an example in every help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

Decorated = Callable[..., Any]


class Verb(click.Command):
    """A command of relet: its own options first in the help, then those that work everywhere."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.everywhere = options_everywhere()
        self.params += self.everywhere

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)


def verb(name: str, *, example: str, cls: type[Verb] = Verb, **settings: Any) -> Callable[[Decorated], Verb]:
    """Declare a command; its function gets the session first, and answers an exit code or None."""

    def declare(function: Decorated) -> Verb:
        return click.command(name, cls=cls, epilog=told(example), **settings)(click.pass_obj(function))

    return declare


def told(example: str) -> str:
    """The end of a command's help."""
    return "\b\nExample:\n" + "\n".join(f"  $ {line}" for line in example.splitlines())


class Verbs(click.Group):
    """A command that has commands of its own."""

    def __init__(self, name: str, commands: list[click.Command], *, example: str, help: str) -> None:
        super().__init__(name, commands, no_args_is_help=False, help=help, epilog=told(example))
        self.everywhere = options_everywhere()
        self.params += self.everywhere

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        write_options(self, ctx, formatter)


def options_everywhere() -> list[click.Parameter]:
    """`--url`, `--tenant`, `--json` and `--color`, as options of one more command."""

    def option(*names: str, **settings: Any) -> click.Option:
        return click.Option([*names], expose_value=False, is_eager=True, callback=_keep, **settings)

    return [
        option("--url", metavar="URL", help="The store, such as sqlite:///work.db."),
        option("--tenant", metavar="NAME", help="The namespace of tasks."),
        option("--json", is_flag=True, help="Answer in JSON: one object, or one a line when it streams."),
        option("--color/--no-color", default=None, help="Colour, whatever stdout is."),
    ]


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    assert param.name is not None, "every option has a name"
    if ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
        ctx.obj.given[param.name] = value
    return value


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The options of a command, those that every command has in a section of their own."""
    everywhere: list[click.Parameter] = getattr(command, "everywhere", [])
    own = [param for param in command.get_params(ctx) if param not in everywhere]
    for title, params in (("Options", own), ("Options of every command", everywhere)):
        if rows := [record for param in params if (record := _record(param, ctx)) is not None]:
            with formatter.section(title):
                formatter.write_dl(rows)


def _record(param: click.Parameter, ctx: click.Context) -> tuple[str, str] | None:
    return param.get_help_record(ctx) if isinstance(param, click.Option) else None


def labels_option(help: str) -> Callable[[Decorated], Decorated]:
    """`--label KEY=VALUE`, as often as needed; a mapping, or None without one."""
    return click.option(
        "--label", "labels", metavar="KEY=VALUE", multiple=True, callback=_labels, help=f"{help} Repeatable."
    )


def _labels(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    pairs = [value.partition("=") for value in values]
    for key, equals, value in pairs:
        if not equals:
            raise click.BadParameter(f"{key + value!r} is not KEY=VALUE")
    return {key: value for key, _, value in pairs} or None


def reveal_option() -> Callable[[Decorated], Decorated]:
    """`--reveal`, for pages on which what is secret is hidden."""

    def reveal(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
        ctx.obj.revealed = wanted

    return click.option(
        "--reveal", is_flag=True, expose_value=False, callback=reveal,
        help="Print what is secret too: values under names such as `password`, and what is registered.",
    )  # fmt: skip


def state_option(help: str) -> Callable[[Decorated], Decorated]:
    """`--state`, one of the states a task can be in."""
    from relet.core.model import State

    return click.option("--state", type=click.Choice([str(state) for state in State]), help=help)
