"""What a crash test found: the first violation with its seed and what repeats it, and how much was covered."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from relet.core.masking import masked
from relet.core.payload import encode
from relet.testing.crash.case import Case, Reconciler, Verify


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that did not hold."""

    rule: str
    text: str
    point: str
    """The plan of the run, as `--point` takes it."""
    command: str
    """What repeats it."""
    words: str = ""
    """The end of what the holders printed."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A crash test."""

    app: str
    kind: str
    seed: int
    ok: bool
    runs: int
    planned: int
    commits: list[str]
    """The commits of the run without faults, in order."""
    points: int
    """At how many of them something was done."""
    struck: int
    """How many faults were done in all."""
    unreached: list[str]
    """Plans whose faults did not all come about."""
    waited: list[str]
    """Plans after which a task rightly waits for a person, since nobody can know what became of an effect."""
    findings: list[Finding]
    seconds: float

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """As text, line by line."""
        yield f"crash test of {self.kind} in {self.app}, seed {self.seed}"
        if self.commits:
            yield f"{len(self.commits)} commits: " + ", ".join(f"{n} {one}" for n, one in enumerate(self.commits, 1))
        done = f"{_count(self.runs, 'run')}, {_count(self.struck, 'fault')}"
        yield f"{done} at {self.points} of {len(self.commits)} commits and in between, {self.seconds:g} s"
        if self.waited:
            yield (
                f"{len(self.waited)} of them wait for a person, as they should: {_some(self.waited)}; "
                "--reconcile MODULE:FUNCTION says what became of their effects"
            )
        if self.unreached:
            yield f"{len(self.unreached)} ended before all of their faults: {_some(self.unreached)}"
        for finding in self.findings:
            yield f"FAIL  {finding.point}  {finding.rule}: {finding.text}"
        if self.findings:
            yield f"repeat it: {self.findings[0].command}"
            if self.findings[0].words:
                yield f"what the holders printed:\n{self.findings[0].words}"
        else:
            yield "all held"


SHOWN = 5


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _some(points: list[str]) -> str:
    return ", ".join(points[:SHOWN]) + (", …" if len(points) > SHOWN else "")


class CrashTestFailed(AssertionError):
    """Something did not hold; `.report` has all of it."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def command(case: Case, seed: int, point: str) -> str:
    """What repeats one run: on the command line, or in Python where functions are given that it cannot name."""
    named = {name: _named(one) for name, one in (("reconcile", case.reconcile), ("verify", case.verify)) if one}
    if None in named.values():
        return f"relet.testing.crash_test({case.app!r}, {case.kind!r}, …, seed={seed}, point={point!r})"
    words = ["relet", "crashtest", case.app, case.kind]
    if case.input is not None:
        words += ["--input", encode("input", case.input)]
    for name, answer in case.answers.items():
        value = "" if answer.value is None else f":{encode('value', answer.value)}"
        words += ["--answer", f"{name}={answer.kind}{value}"]
    for name, payload in case.signals.items():
        words += ["--signal", f"{name}={encode('payload', payload)}"]
    options: dict[str, Any] = {"ttl": case.ttl, "wrap": case.wrap, "url": _without_password(case.url), **named}
    for name, value in options.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    if case.same_result:
        words.append("--same-result")
    return shlex.join([*words, "--seed", str(seed), "--point", point])


def _without_password(url: str | None) -> str | None:
    return url and re.sub(r":\*\*\*(?=@)|(?<=[?&])(ssl)?password=\*\*\*&?", "", masked(url))


def _named(function: Verify | Reconciler) -> str | None:
    """A function as module:name; None when another process cannot find it by that."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    return None if module in (None, "__main__") or "<" in name or not name else f"{module}:{name}"
