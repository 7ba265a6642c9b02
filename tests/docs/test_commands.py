"""Commands that no test runs, since they need a server, are at least commands that there are."""

import re
import shlex

import click
import pytest

from relet.cli.menu import program
from relet.cli.session import Session
from tests.docs.runner import read_blocks
from tests.docs.test_blocks import PAGES, ROOT

SHELL = re.compile(r"\s(?:[|&]|2?>).*")
"""What a shell does with a command, and the command does not see."""


def skipped(page):
    for block in read_blocks(page):
        if block.mark == "skip" and block.language == "console":
            yield from (
                line.removeprefix("$ relet ") for line in block.text.splitlines() if line.startswith("$ relet ")
            )


INLINE = re.compile(r"(?<!`)`relet ([^`…]+)`(?!`)")
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def inline(page):
    """Those within a sentence; one that leaves out what must follow is read all the same."""
    return INLINE.findall(FENCED.sub("", page.read_text(encoding="utf-8")))


def parse(words):
    """As the command line reads it; nothing is done."""
    command, names, context = program(), ["relet"], None
    while True:
        context = command.make_context(names[-1], words, context, obj=Session())
        if not isinstance(command, click.Group):
            return
        if not (left := [*context._protected_args, *context.args]):
            raise click.MissingParameter(ctx=context, param_hint="COMMAND", param_type="argument")
        name, command, words = command.resolve_command(context, left)
        names.append(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_that_is_not_run_is_one_that_there_is(page):
    for command in skipped(page):
        try:
            parse(shlex.split(SHELL.sub("", command), comments=True))
        except click.UsageError as wrong:
            pytest.fail(f"relet {command}: {wrong.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_within_a_sentence_is_one_that_there_is(page):
    for command in inline(page):
        try:
            parse(shlex.split(command))
        except (click.MissingParameter, click.BadOptionUsage):
            continue
        except click.UsageError as wrong:
            pytest.fail(f"relet {command}: {wrong.format_message()}")
