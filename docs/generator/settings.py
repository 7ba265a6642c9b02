"""The schema of a file of settings, as it is committed beside the pages."""

from __future__ import annotations

import json

from docs.generator.pages import DOCS
from relet.cli.schema import document

FILE = DOCS / "reference" / "config.schema.json"


def text() -> str:
    """The file as it should be now: the same as `relet config --schema` prints."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"
