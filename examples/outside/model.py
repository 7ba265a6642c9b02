"""A language model, as the examples need one: a prompt in, a text and its price out. Scripted, unless told else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

import relet
from examples.outside.chat import ChatModel, Completion

T = TypeVar("T")
Script = Callable[[dict[str, str]], Any]
"""What a scripted model says to the parts of a prompt, as JSON."""
CHARS_PER_TOKEN = 4


class Model(Protocol):
    """The whole interface; a client of your own fills it with one method."""

    def complete(self, prompt: str) -> Completion:
        """The model's answer. Raises `relet.Temporary` or `relet.Permanent`."""


def chosen(scripts: Mapping[str, Script]) -> Model:
    """The endpoint at `EXAMPLE_MODEL_URL`, where one is named; else the scripted one, as slow as asked for."""
    if url := os.environ.get("EXAMPLE_MODEL_URL"):
        return ChatModel(url, os.environ.get("EXAMPLE_MODEL", "default"), os.environ.get("EXAMPLE_MODEL_KEY"))
    return ScriptedModel(scripts, seconds=float(os.environ.get("EXAMPLE_MODEL_SECONDS", "0")))


def prompt(job: str, order: str, **parts: str) -> str:
    """A prompt that people, models and scripts can read: what to do, how to answer, and the material."""
    material = "".join(f"\n## {name}\n{text}\n" for name, text in parts.items())
    return f"# {job}\n{order} Answer with JSON and nothing else.\n{material}"


def parsed(answer: Completion, kind: type[T]) -> T:
    """The answer as a type.

    Raises `relet.Temporary` for one that does not fit: asked again, a model may do better.
    """
    text = answer.text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as wrong:
        raise relet.Temporary(f"the model's answer does not fit {kind}: {wrong}", code="MODEL-ANSWER") from None


class ScriptedModel:
    """Answers each job by a function, and the same each time; counts tokens as a real one would charge them."""

    def __init__(self, scripts: Mapping[str, Script], *, seconds: float = 0.0) -> None:
        self._scripts = dict(scripts)
        self._seconds = seconds

    def complete(self, prompt: str) -> Completion:
        """What the script says to this prompt."""
        time.sleep(self._seconds)
        head, *sections = prompt.split("\n## ")
        job = head.splitlines()[0].removeprefix("# ")
        parts = dict(section.split("\n", 1) for section in sections)
        said = self._scripts[job]({name: text.strip() for name, text in parts.items()})
        text = msgspec.json.encode(said).decode()
        return Completion(text=text, tokens=(len(prompt) + len(text)) // CHARS_PER_TOKEN)
