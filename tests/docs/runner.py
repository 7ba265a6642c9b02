"""Run the code blocks of one page, in order, in one folder, as a reader would.

python    blocks share one namespace; `await` works at top level.
console   each `$ command` runs in one shell session (its variables stay); `> ` continues it. It must exit 0,
          unless the next one reads `$?`. Lines under it, if any, are what it prints; `...` stands for
          anything within a line, and on a line of its own for any lines.

An HTML comment above a block changes that:
    <!-- file: work.py -->    the block, of any language, is written to that file instead of being run
    <!-- skip: reason -->     the block is not run
"""

import ast
import asyncio
import contextlib
import inspect
import os
import re
import signal
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

COMMAND_SECONDS_MAX = 60
# What a console block may run. Anything else (pip, make, apt-get) is for the reader's machine.
PROGRAMS = {
    "cat", "cd", "echo", "export", "kill", "ls", "mkdir", "printf", "python", "relet", "rm", "sleep", "umask",
    "unset",
}  # fmt: skip
# Readers take these for commands, but their blocks are not run.
MISLEADING = {"bash", "pycon", "sh", "shell", "zsh"}
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<language>[^`\s]*)")
MARK = re.compile(r"^<!-- *(?P<word>skip|file)\b:?(?P<text>.*?)-->$")
ASSIGNMENTS = re.compile(r"""^(?:\w+=(?:"[^"]*"|'[^']*'|\$\([^)]*\)|[^\s"'$]|\$(?!\())*\s*)*""")
# $1 keeps variables and umask between commands, $2 is the exit code of the command before, $3 is the command.
SHELL = """set -a; . "$1"; cd "$PWD" || exit; trap '{ export -p; echo "umask $(umask)"; } >"$1"' EXIT
(exit "$2"); eval "$3" """


class BlockError(AssertionError):
    """A block is not what it seems, or did not do what the page says."""


@dataclass(frozen=True)
class Block:
    page: Path
    line: int  # its first line in the page, counted from 1
    language: str
    text: str
    mark: str = ""  # skip, file, or nothing
    mark_text: str = ""

    def error(self, message, offset=0):
        return BlockError(f"{self.page}:{self.line + offset}: {message}")

    @property
    def acts(self):
        return self.mark == "file" or (self.mark == "" and self.language in {"python", "console"})


def read_blocks(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    mark, number = ("", ""), 0
    while number < len(lines):
        line, number = lines[number], number + 1
        if found := MARK.match(line.strip()):
            mark = (found["word"], found["text"].strip())
            if not mark[1]:
                raise BlockError(f"{page}:{number}: `{mark[0]}` says nothing: write <!-- {mark[0]}: ... -->")
        elif opening := FENCE.match(line):
            start = number
            while number < len(lines) and not _closes(lines[number].strip(), opening["fence"]):
                number += 1
            text = "".join(inside.removeprefix(opening["indent"]) + "\n" for inside in lines[start:number])
            number += 1
            block = Block(page, start + 1, opening["language"], text, *mark)
            if block.language in MISLEADING and not block.mark:
                raise block.error(f"`{block.language}` is not run: make it console, a file, or skip it")
            mark = ("", "")
            yield block
        elif line.strip() and mark[0]:
            raise BlockError(f"{page}:{number}: the `{mark[0]}` comment stands over no code block")


def _closes(line, fence):
    return line.startswith(fence) and set(line) == {fence[0]}


class Session:
    """One reader at work: a folder, a namespace, an event loop, a shell."""

    def __init__(self, folder):
        self.folder = folder
        self.module = types.ModuleType("page")
        self.loop = asyncio.Runner()
        self.status = 0
        self.groups = []
        self.variables = folder / ".variables"
        self.variables.touch()

    def __enter__(self):
        sys.modules["page"] = self.module  # dataclasses and annotations look their module up by name
        sys.path.insert(0, str(self.folder))
        return self

    def __exit__(self, *_):
        self.loop.close()
        sys.path.remove(str(self.folder))
        for name, module in list(sys.modules.items()):
            if module is self.module or str(getattr(module, "__file__", "")).startswith(f"{self.folder}/"):
                del sys.modules[name]
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def run(self, block):
        if block.mark == "file":
            target = self.folder / block.mark_text
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            self.run_python(block)
        else:
            self.run_console(block)

    def run_python(self, block):
        try:
            # Blank lines in front make a traceback point into the page.
            source = "\n" * (block.line - 1) + block.text
            code = compile(source, str(block.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            result = eval(code, vars(self.module))
            if code.co_flags & inspect.CO_COROUTINE:
                self.loop.run(result)
        except Exception as error:
            raise block.error(f"{type(error).__name__}: {error}") from error

    def run_console(self, block):
        commands = list(read_commands(block))
        for (offset, command, expected), (_, following, _) in zip(
            commands, [*commands[1:], (0, "", [])], strict=True
        ):
            out, err = self.run_command(command)
            if self.status and "$?" not in following:
                raise block.error(f"`{command}` ended with exit code {self.status}\n{out}{err}", offset)
            # A page may show what goes to stdout, to stderr, or both.
            if expected and not any(matches(expected, text) for text in (out, err, out + err, err + out)):
                wanted = "\n".join(expected)
                raise block.error(f"`{command}` printed\n{out}{err}\nand the page says\n{wanted}", offset)

    def run_command(self, command):
        # Files, not pipes: a worker that a page leaves running in the background keeps its output open.
        files = [self.folder / ".out", self.folder / ".err"]
        with files[0].open("wb") as out, files[1].open("wb") as err:
            process = subprocess.Popen(
                ["/bin/sh", "-c", SHELL, "sh", self.variables, str(self.status), command],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
        self.groups.append(process.pid)
        try:
            self.status = process.wait(COMMAND_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            self.status = process.wait()
        return [file.read_text(encoding="utf-8", errors="replace") for file in files]


def read_commands(block):
    """(line within the block, command, expected lines) of each `$`."""
    commands = []
    for offset, line in enumerate(block.text.splitlines()):
        if line.startswith("$ "):
            commands.append((offset, line.removeprefix("$ "), []))
        elif not commands:
            raise block.error("a console block starts with `$ command`", offset)
        elif line.startswith("> ") and not commands[-1][2]:
            start, command, expected = commands[-1]
            commands[-1] = (start, f"{command}\n{line.removeprefix('> ')}", expected)
        else:
            commands[-1][2].append(line.rstrip())
    for offset, command, expected in commands:
        program, *_ = ASSIGNMENTS.sub("", command).split() or ["export"]
        if program not in PROGRAMS:
            raise block.error(f"`{program}` is not run here: skip the block with a reason", offset)
        while expected and not expected[-1]:
            expected.pop()
        yield offset, command, expected


def matches(expected, output):
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line).replace(r"\.\.\.", ".*?") + r"\n"
        for line in expected
    )
    printed = "".join(f"{line.rstrip()}\n" for line in output.rstrip().splitlines())
    return re.fullmatch(pattern, printed) is not None
