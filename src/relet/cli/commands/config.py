"""`relet config`: the settings that hold here, and where each was set."""

from __future__ import annotations

from typing import Any

import click

from relet.cli.colour import Paint
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.settings import SETTINGS
from relet.cli.words import clean, table
from relet.core.masking import masked


@verb("config", example="RELET_URL=sqlite:////srv/work.db relet config\nrelet config --schema >relet.schema.json")
@click.option("--schema", is_flag=True, help="Print what a file of settings may hold, as a JSON Schema.")
def config(session: Session, schema: bool) -> None:
    """Print the settings that hold here, and where each one was set.

    A flag wins over RELET_* of the environment, that over relet.toml (or [tool.relet] of pyproject.toml) of this
    folder, that over the user's own file, that over the default.
    """
    if schema:
        _show_schema(session)
        return
    rows: list[dict[str, Any]] = []
    for setting in SETTINGS:
        value, origin = session.settings.effective(setting.name)
        if setting.name == "url":
            value = masked(value)
        rows.append({"name": setting.name, "value": value, "origin": origin, "variable": setting.variable})
    place = session.file(session.value("url"))
    if session.json:
        files = [file.origin for file in session.settings.files()]
        session.answer({"settings": rows, "place": None if place is None else str(place), "files": files})
        return
    cells = [[row["name"], _shown(row["value"]), clean(row["origin"]), row["variable"]] for row in rows]
    session.data(table(("SETTING", "VALUE", "SET BY", "VARIABLE"), cells, Paint(session.color)))
    if place is not None:
        session.talk(f"the store is {place}" + ("" if place.exists() else " (there is no such file yet)"))


def _show_schema(session: Session) -> None:
    import json

    from relet.cli.schema import document

    session.data(json.dumps(document(), indent=2, ensure_ascii=False))


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return clean(",".join(value) if isinstance(value, list) else value)
