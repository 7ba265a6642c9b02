"""What the scripted model writes in place of a real one."""

from __future__ import annotations

from typing import Any


def draft(parts: dict[str, str]) -> Any:
    """A text, and a better one when somebody has said something about the last."""
    if "remark" not in parts:
        return f"News about {parts['topic']}."
    return f"{parts['draft']} (after “{parts['remark']}”)"


SCRIPTS = {"draft": draft}
