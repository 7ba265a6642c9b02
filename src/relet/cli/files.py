"""Settings in files: relet.toml or pyproject.toml of this folder, and the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from relet.core.errors import Invalid


class FileSettings(NamedTuple):
    """What one file sets."""

    origin: str
    values: dict[str, Any]


def read_files(environ: Mapping[str, str], known: frozenset[str]) -> list[FileSettings]:
    """Files that exist, the strongest first; beside a relet.toml, pyproject.toml is not asked.

    Raises `Invalid` for a file that cannot be read, and for a key that is not a setting, by its name.
    """
    found: list[FileSettings] = []
    own, project, user = Path("relet.toml"), Path("pyproject.toml"), user_file(environ)
    if own.is_file():
        found.append(_checked(str(own.absolute()), _parsed(own), known))
    elif project.is_file() and b"[tool.relet" in project.read_bytes():
        table = _parsed(project).get("tool", {}).get("relet", {})
        found.append(_checked(f"{project.absolute()} [tool.relet]", table, known))
    if user.is_file():
        found.append(_checked(str(user), _parsed(user), known))
    return found


def user_file(environ: Mapping[str, str]) -> Path:
    """The user's own file, by the XDG convention."""
    folder = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or Path.home()) / ".config"
    return Path(folder) / "relet" / "config.toml"


def _parsed(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as wrong:
        raise Invalid(f"{path.absolute()}: cannot be read as TOML: {wrong}", path=str(path.absolute())) from wrong


def _checked(origin: str, values: Any, known: frozenset[str]) -> FileSettings:
    if not isinstance(values, dict):
        raise Invalid(f"{origin}: is not a table of settings", path=origin)
    for key in values:
        if key not in known:
            import difflib

            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}"
            raise Invalid(f"{origin}: there is no setting {key!r}; {hint}", field=key, path=origin)
    return FileSettings(origin, values)
