"""A file of settings as a JSON Schema: for editors, and for programs that write one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relet.cli.settings import SETTINGS, duration, flag, names, rate, text, whole

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
FORMS: Final[dict[Callable[[str, Any], Any], dict[str, Any]]] = {
    text: {"type": "string", "minLength": 1},
    duration: {"type": ["string", "number"]},
    rate: {"type": ["string", "integer"]},
    flag: {"type": "boolean"},
    whole: {"type": "integer", "minimum": 1},
    names: {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "\\S"}},
}
"""How a file gives what is read so. Other spellings are for the environment, which has nothing but text."""


def document() -> dict[str, Any]:
    """The schema of relet.toml, of the user's own file, and of [tool.relet]."""
    properties: dict[str, Any] = {}
    for setting in SETTINGS:
        about = {"description": setting.help} | ({} if setting.default is None else {"default": setting.default})
        properties[setting.name] = FORMS[setting.read] | about
    return {
        "$schema": DIALECT, "title": "Settings of relet", "type": "object", "properties": properties,
        "additionalProperties": False,
        "description": "relet.toml of a folder, [tool.relet] of its pyproject.toml, or the user's relet/config.toml",
    }  # fmt: skip
