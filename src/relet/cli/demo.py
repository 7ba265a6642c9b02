"""`relet demo`: see it hold, on this machine, in real processes, without a network."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from relet.cli.colour import Paint
from relet.cli.demonstration.act import Broken
from relet.cli.demonstration.cast import Place
from relet.cli.demonstration.lost_reply import LostReply
from relet.cli.demonstration.takeover import Takeover
from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session
from relet.connect import DEFAULT_SCHEMA, POSTGRES, connect

GO_ON = """
Those were real processes, really frozen and killed; no line above is printed unless it holds. Go on:
  relet exec reports -- ./any-program     any program under a lease      (relet exec --help)
  relet worker work:app                   your Python functions          (relet worker --help)
  relet submit reports '{"topic": "x"}'   something for them to do
  relet show ID                           who holds it, since when, and why it was taken over
"""


@verb("demo", example="relet demo\nrelet demo --json\nrelet demo --url postgresql://user@host/database")
def demo(session: Session) -> Exit:
    """Watch a frozen worker lose its task, and a lost reply do no harm.

    Real processes: A freezes, its lease lapses, B takes over from A's checkpoint, A wakes and is refused. Then C is
    killed between an order to a shop and its reply, and D asks the shop instead of ordering again. Takes about eight
    seconds, on a temporary store unless --url is given; in a PostgreSQL database that is a schema of its own, removed
    at the end. Each line is an assertion; the exit code is 1 when one does not hold.
    """
    return Exit(play(session.given.get("url"), as_json=session.json, paint=Paint(on=session.color)))


def play(url: str | None, *, as_json: bool, paint: Paint) -> int:
    """Tell the story; 0 when every line held."""
    if sys.platform == "win32":
        click.echo("relet: the demo freezes processes by signals, which Windows has not", err=True)
        return 1
    started = time.monotonic()
    tell = _teller(started, paint, as_json=as_json)
    with _place(url) as place, connect(place.url, schema=place.schema) as db, ExitStack() as cast:
        try:
            second = LostReply(db, place, tell, cast)
            Takeover(db, place, tell, second.prepare).run()
            second.run()
        except Broken:
            return 1
        except TimeoutError as silence:
            tell(False, str(silence))
            return 1
    seconds = round(time.monotonic() - started, 1)
    if as_json:
        click.echo(json.dumps({"ok": True, "text": "all lines held", "seconds": seconds}))
    else:
        click.echo(f"\nAll lines held, in {seconds} s.{GO_ON}", nl=False)
    return 0


@contextmanager
def _place(url: str | None) -> Iterator[Place]:
    """Where the store of the demonstration is."""
    if url is None:
        with tempfile.TemporaryDirectory(prefix="relet-demo-") as folder:
            yield Place(f"sqlite:///{folder}/demo.db", DEFAULT_SCHEMA)
    elif url.partition(":")[0] in POSTGRES:
        from relet.store.postgres.passing import passing_schema

        with passing_schema(url, "relet_demo") as schema:
            yield Place(url.partition("#")[0], schema)  # a schema that it names is somebody's own
    else:
        yield Place(url, DEFAULT_SCHEMA)


def _teller(started: float, paint: Paint, *, as_json: bool) -> Callable[..., None]:
    def tell(holds: bool, text: str, **facts: Any) -> None:
        at = round(time.monotonic() - started, 1)
        if as_json:
            click.echo(json.dumps({"ok": holds, "at": at, "text": text, **facts}))
            return
        mark = paint("ok  ", "green") if holds else paint("FAIL", "red", bold=True)
        click.echo(f"{at:5.1f} s  {mark}  {text}", color=True)

    return tell
