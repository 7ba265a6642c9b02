"""Artifacts behind a service: sent to it and fetched from it as streams, checked at both ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO, Final, Protocol

from relet.artifacts import verified
from relet.artifacts.pieces import Pieces
from relet.artifacts.place import Bytes, Collected, Path, Stored
from relet.artifacts.source import Source
from relet.artifacts.uri import digest_of, given_digest, uri_of
from relet.artifacts.verified import VerifiedReader
from relet.core.errors import Invalid, NotFound
from relet.core.whoami import PREFIX

PATH: Final = f"{PREFIX}/artifacts"


class Streaming(Protocol):
    """A line to a service, as much of it as is needed here."""

    url: str

    def ask(self, method: str, path: str, *, writes: bool) -> Any:
        """The answer to a request."""

    def send(self, path: str, content: Iterator[bytes]) -> None:
        """Put bytes there; nobody sees them before all have arrived."""

    def fetched(self, path: str) -> AbstractContextManager[tuple[int, Iterator[bytes]]]:
        """How many bytes an answer has, and the pieces of it."""


class ServiceArtifacts:
    """The place of a service. What nobody names is collected there, and not from here."""

    def __init__(self, line: Streaming, *, now: Callable[[], float] = time.time) -> None:
        self._line = line
        self.now = now

    def __repr__(self) -> str:
        return f"<artifacts at {self._line.url}>"

    def put(self, source: Bytes | Path, sha256: str | None = None) -> Stored:
        wanted = None if sha256 is None else given_digest("sha256", sha256)
        with Source(source) as opened:
            digest, size = opened.known()
            opened.confirm(digest, wanted)
            self._line.send(f"{PATH}/{digest}", (bytes(piece) for piece in opened.unchanged(digest, size)))
        return Stored(uri_of(digest), digest, size)

    def open(self, uri: str) -> BinaryIO:
        return verified.opened(self._reader(uri))

    def read(self, uri: str, limit: int | None = None) -> bytes:
        return verified.whole(self._reader(uri), limit)

    def _reader(self, uri: str) -> VerifiedReader:
        digest, answer = digest_of(uri), ExitStack()
        size, pieces = answer.enter_context(self._line.fetched(f"{PATH}/{digest}"))
        return VerifiedReader(Pieces(pieces).fill, answer.close, size=size, digest=digest, place=self._line.url)

    def exists(self, uri: str) -> bool:
        try:
            self._line.ask("HEAD", f"{PATH}/{digest_of(uri)}", writes=False)
        except NotFound:
            return False
        return True

    def delete(self, uri: str) -> None:  # noqa: ARG002 - of the port
        raise self._at_home()

    def list(self, older_than_s: float) -> Iterator[Stored]:  # noqa: ARG002 - of the port
        raise self._at_home()

    def delete_older(self, uri: str, before_s: float) -> Collected:  # noqa: ARG002 - of the port
        raise self._at_home()

    def tidy(self, before_s: float) -> Collected:  # noqa: ARG002 - of the port
        raise self._at_home()

    def _at_home(self) -> Invalid:
        return Invalid(
            f"artifacts: those of {self._line.url} are removed where the service runs → relet prune --artifacts",
            field="artifacts",
        )
