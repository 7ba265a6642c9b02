"""The interface of the service as a file: the OpenAPI document, as the service itself answers it."""

from __future__ import annotations

import json

from docs.generator.pages import DOCS
from relet.server.openapi import document

FILE = DOCS / "openapi.json"


def text() -> str:
    """What must stand in the file."""
    return f"{json.dumps(document(), indent=1, ensure_ascii=False)}\n"
