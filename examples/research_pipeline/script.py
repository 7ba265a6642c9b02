"""What the scripted model says in place of a real one."""

from __future__ import annotations

import re
from typing import Any


def extract(parts: dict[str, str]) -> Any:
    """The sentences of the page that name the topic."""
    sentences = re.findall(r"[^.]+\.", parts["page"])
    return [sentence.strip() for sentence in sentences if parts["topic"] in sentence.lower()]


def summarise(parts: dict[str, str]) -> Any:
    """A title and how much was found."""
    claims = parts["findings"].splitlines()
    return {"title": f"What is known of {parts['topic']}", "summary": f"{len(claims)} findings: {claims[0]} …"}


SCRIPTS = {"extract": extract, "summarise": summarise}
