"""How the pages become a site: `make docs` (warnings are errors)."""

import tomllib
from pathlib import Path

_FILE = Path(__file__).parents[1] / "pyproject.toml"
_PROJECT = tomllib.loads(_FILE.read_text(encoding="utf-8"))["project"]

project = _PROJECT["name"]
release = version = _PROJECT["version"]
author = "the relet authors"

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
# A link to a heading of any page is checked too.
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_show_copyright = False
