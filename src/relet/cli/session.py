"""One run of a command: its settings, its store, and where its words go."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from relet.cli.exits import Exit
from relet.cli.settings import Settings

if TYPE_CHECKING:
    from relet.client.blocking import Client
    from relet.core.backend import Backend

Noun = TypeVar("Noun")
Opened = TypeVar("Opened", "Client", "Backend")


class Session:
    """Data goes to stdout, talk to stderr; the format is chosen by `--json` and never by what stdout is."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        """Settings given as flags; commands add those of their own options."""
        self.settings = Settings(self.given)
        self.place: str | None = None
        """The store in full, once it is open."""
        self.revealed = False
        """Was it asked to print what is secret, too."""

    def value(self, name: str, flag: Any = None) -> Any:
        """A setting that holds, `flag` being what the command's own option says."""
        if flag is not None:
            self.given[name] = flag
        return self.settings.value(name)

    @property
    def json(self) -> bool:
        """Are answers wanted in JSON."""
        return bool(self.value("json"))

    @property
    def color(self) -> bool:
        """Is colour wanted: as asked for, else on a terminal, unless NO_COLOR or a dumb one."""
        from relet.cli.colour import wanted

        return wanted(self.value("color"))

    # -- the store -----------------------------------------------------------------------------------------------

    def client(self) -> Client:
        """The store, open until the command ends; a new one is made where there is none."""
        return self._open(self.value("url"))

    def existing(self) -> Client:
        """The store, for a command about what is in it: where there is none, none is made, and nothing is found."""
        return self._existing(self._open)

    def backend(self) -> Backend:
        """As `existing`, without a client, for commands that shell hooks run: a client's modules take their time."""
        from relet.connect import backend_of

        self.watch()
        return self._existing(lambda url: self._kept(backend_of(url, self.value("tenant"), None)))

    def watch(self) -> None:
        """Know the secrets of the environment, before a store is opened that would look for them by itself."""
        from relet.core.redaction import SECRETS

        SECRETS.watch(os.environ, self.value("redact_env"))

    def _existing(self, opening: Callable[[str], Opened]) -> Opened:
        from relet.connect import is_postgres, is_there

        url = self.value("url")
        path = self.file(url)
        if is_there(url) if is_postgres(url) else path is None or path.exists():
            return opening(url)
        opened = opening("sqlite://")
        self.place = (
            "that database (there is no store in it yet)" if path is None else (f"{path} (there is no such file yet)")
        )
        return opened

    def _open(self, url: str) -> Client:
        from relet.connect import connect

        self.watch()
        return self._kept(connect(url, self.value("tenant"), self.value("holder")))

    def _kept(self, opened: Opened) -> Opened:
        """Open until the command ends."""
        self.place = opened.place
        click.get_current_context().call_on_close(opened.close)
        return opened

    def file(self, url: str) -> Path | None:
        """The file that a URL means, in full; None when it means none."""
        if not url.startswith("sqlite:"):
            return None
        from relet.store.sqlite.place import path_of

        return path_of(url)

    # -- words ---------------------------------------------------------------------------------------------------

    def data(self, text: str) -> None:
        """A line, or lines, of data."""
        click.echo(text, color=True)

    def seen(self, noun: Noun) -> Noun:
        """A noun as it is printed for people: without what is secret, unless that was asked for."""
        from relet.core.redaction import SECRETS

        return noun if self.revealed else SECRETS.shown(noun)

    def answer(self, value: Any) -> None:
        """An answer as one line of JSON."""
        click.echo(encoded(value))

    def talk(self, text: str) -> None:
        """A word beside the data."""
        from relet.cli.words import clean
        from relet.core.redaction import SECRETS

        click.echo(f"relet: {clean(SECRETS.text(text))}", err=True)

    def empty(self, what: str) -> None:
        """Say that nothing was there, and where it was looked for."""
        self.talk(f"{what} in {self.place}")

    def decline(self, code: Exit, name: str, message: str, **detail: Any) -> Exit:
        """End without an answer, though nothing went wrong: told on stderr, as errors are."""
        tell(self.json, {"code": name, "message": message, "detail": {**detail, "place": self.place}})
        return code


def encoded(value: Any) -> str:
    """JSON, as the store's own nouns are sent: fields by name, times in UTC."""
    from relet.core.wire import encode

    return encode(value).decode()


def tell(json: bool, error: dict[str, Any]) -> None:
    """An error or a refusal, on stderr, without what is secret: one paragraph, or one object."""
    from relet.cli.words import clean
    from relet.core.problem import facts_told
    from relet.core.redaction import SECRETS

    error = {**error, "message": SECRETS.text(error["message"]), "detail": facts_told(error["detail"])}
    text = encoded(error) if json else clean(f"relet: {error['message']} [{error['code']}]")
    click.echo(text, err=True)
