"""What every place for artifacts can do; a folder and a bucket do it each in their own way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias

Bytes: TypeAlias = bytes | bytearray | memoryview
Path: TypeAlias = str | os.PathLike[str]


class Stored(NamedTuple):
    """Bytes that are in their place: their URI, the SHA-256 that they have, and how many they are."""

    uri: str
    sha256: str
    size: int


class Collected(NamedTuple):
    """What a collection removed: how many objects, and their bytes."""

    n: int
    bytes: int

    def __add__(self, other: object) -> Collected:
        """Both together."""
        if not isinstance(other, Collected):
            return NotImplemented
        return Collected(self.n + other.n, self.bytes + other.bytes)


NOTHING = Collected(0, 0)


class ArtifactStore(Protocol):
    """Bytes by what they are. Whoever names them elsewhere stores them first, and commits the name after."""

    now: Callable[[], float]
    """The wall clock by which ages are judged, in seconds since 1970."""

    def put(self, source: Bytes | Path, sha256: str | None = None) -> Stored:
        """Store bytes, or those of the file at a path; durable when this returns, and safe to repeat.

        With `sha256`, other bytes are refused. Nothing is visible before all of it is stored. `Invalid` names what
        is wrong with the source; `Unavailable` means that nothing was stored that anybody will see.
        """
        ...

    def open(self, uri: str) -> BinaryIO:
        """The bytes as a file, checked while they are read: the read that would hand out the last of them raises
        `RELET-ARTIFACT-DAMAGED` instead when they are not what the URI names. `NotFound` when they are not here.

        Up to 8 MiB they are checked before this returns, and the file can seek; larger ones are a stream.
        """
        ...

    def read(self, uri: str, limit: int | None = None) -> bytes:
        """All of the bytes, checked; `Invalid` when they are more than `limit`."""
        ...

    def exists(self, uri: str) -> bool:
        """Is something stored under this URI; its bytes are not looked at."""
        ...

    def delete(self, uri: str) -> None:
        """Remove the bytes at once, whoever may still name them; gone already is fine."""
        ...

    def list(self, older_than_s: float) -> Iterator[Stored]:
        """What was stored or stored again at least this long ago, in no order; one of them may come twice."""
        ...

    def delete_older(self, uri: str, before_s: float) -> Collected:
        """Remove the bytes if they were last put before an instant (of `now`); no put of the same bytes is lost."""
        ...

    def tidy(self, before_s: float) -> Collected:
        """Remove what nobody can see and puts that died have left, where that is older than an instant."""
        ...
