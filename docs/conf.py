"""How the pages become a site: `make docs` (warnings are errors)."""

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import re

_ROOT = Path(__file__).parents[1]
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
sys.path.insert(0, str(_ROOT))

project = _PROJECT["name"]
release = version = _PROJECT["version"]
author = "the relet authors"

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
# A link to a heading of any page is checked too.
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_show_copyright = False


def setup(app: Any) -> None:
    """Draw the diagram of states, which code browsers draw from its text, into the page itself."""
    from docs.generator.states import MERMAID, svg

    def drawn(found: "re.Match[str]") -> str:
        return f"```{{raw}} html\n{svg(found['text'])}\n```"

    def on_read(_app: Any, _page: str, source: list[str]) -> None:
        source[0] = MERMAID.sub(drawn, source[0])

    app.connect("source-read", on_read)
