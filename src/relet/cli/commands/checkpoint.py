"""`relet save`, `relet load`: named values for whoever holds the task next."""

from __future__ import annotations

import click

from relet.cli.handles import holder_verb, read_handle
from relet.cli.session import Session
from relet.cli.values import STDIN, json_of
from relet.client import asks


@holder_verb(
    "save",
    example="""relet save '{"page": 3}' --handle-file .handle
relet save @state.json --name crawl --handle-file .handle""",
)
@click.argument("value", metavar="JSON")
@click.option("--name", default="main", help="The checkpoint's name.  [default: main]")
def save(session: Session, value: str, name: str, handle_file: str | None) -> None:
    """Keep a value for the next holder of the task.

    JSON is text, @file, or - for stdin. Prints how often this name has been saved. Ends with exit code 5 when the
    lease is lost: nothing was saved.
    """
    handle = read_handle(handle_file, stdin_taken=value == STDIN)
    client = session.existing()
    ask = asks.save(handle, client.files.filed("value", json_of("value", value)), name)
    version = client.backend.call(ask).version
    if session.json:
        session.answer({"task_id": handle.task_id, "token": handle.token, "name": name, "version": version})
    else:
        session.data(str(version))


@holder_verb("load", example="relet load --name crawl --handle-file .handle")
@click.option("--name", default="main", help="The checkpoint's name.  [default: main]")
def load(session: Session, name: str, handle_file: str | None) -> None:
    """Print what any holder of the task saved last, as JSON.

    It is null when nobody has saved under that name.
    """
    handle = read_handle(handle_file)
    client = session.existing()
    value = client.files.fetched(client.backend.call(asks.load(handle, name)))
    session.answer(value)
    if value is None:
        session.empty(f"nothing is saved under {name} for task {handle.task_id}")
