"""The command line as parts: every command as click knows it, and the settings."""

from __future__ import annotations

import inspect
from typing import Final

import click

from docs.generator.markdown import code, table
from relet.cli.menu import COMMANDS, program
from relet.cli.settings import SETTINGS, option_of

VERBATIM: Final = "\b"


def parts() -> dict[str, str]:
    """Each command under its own name, the list of all, and the settings."""
    group = program()
    with click.Context(group, info_name="relet") as root:
        found = {entry.name: group.get_command(root, entry.name) for entry in COMMANDS}
        made = {f"command {name}": _command(name, one, root) for name, one in found.items() if one is not None}
        made["options of every command"] = _options(group, root, skip={"version"})
        rows = [
            [f"[`relet {name}`](#relet-{name})", one.get_short_help_str(200)]
            for name, one in found.items()
            if one is not None
        ]
        made["commands"] = table(["command", "what it does"], rows)
    made["settings"] = table(
        ["setting", "flag", "environment", "default", "what it is"],
        [
            [code(one.name), code(option_of(one.name)) if one.has_flag else "", code(one.variable),
             "" if one.default is None else
             code(str(one.default).lower() if isinstance(one.default, bool) else one.default), one.help]
            for one in SETTINGS
        ],
    )  # fmt: skip
    return made


def _command(name: str, command: click.Command, above: click.Context) -> str:
    """A command, and behind it those that it has of its own."""
    with click.Context(command, info_name=name, parent=above) as context:
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        told = [f"```text\n{usage}\n```", _prose(command.help or "")]
        everywhere = {one.name for one in getattr(command, "everywhere", [])}
        if options := _options(command, context, skip=everywhere):
            told.append(options)
        if command.epilog:
            told.append(_prose(command.epilog))
        if isinstance(command, click.Group):
            told += [_command(one, command.commands[one], context) for one in command.commands]
    return "\n\n".join(told)


def _options(command: click.Command, context: click.Context, skip: set[str | None]) -> str:
    rows = []
    for one in command.get_params(context):
        if isinstance(one, click.Option) and one.name not in skip and "--help" not in one.opts:
            record = one.get_help_record(context)
            if record is not None:
                rows.append([code(record[0]), record[1]])
    return table(["option", "what it does"], rows) if rows else ""


def _prose(text: str) -> str:
    """Help text as Markdown: paragraphs as they are, those marked to be left alone as text."""
    paragraphs = inspect.cleandoc(text).replace("\f", "").split("\n\n")
    return "\n\n".join(_paragraph(one.strip("\n")) for one in paragraphs if one.strip())


def _paragraph(text: str) -> str:
    if not text.startswith(VERBATIM):
        return text
    lines = text.removeprefix(VERBATIM).strip("\n").splitlines()
    title = [f"{lines.pop(0)}\n"] if lines and lines[0].endswith(":") else []
    body = inspect.cleandoc("\n" + "\n".join(lines))
    return "\n".join([*title, "```text", body, "```"])
