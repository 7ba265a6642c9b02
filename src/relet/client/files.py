"""Bytes beside the store: what is attached, and values too large to be kept in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec

from relet.core import limits, payload
from relet.core.errors import Error, Invalid
from relet.core.payload import decode


class Placed(Protocol):
    """Bytes that are in their place."""

    @property
    def uri(self) -> str:
        """Where they are."""

    @property
    def sha256(self) -> str:
        """What they are."""

    @property
    def size(self) -> int:
        """How many they are."""


class Place(Protocol):
    """What a client needs of a place for artifacts."""

    def put(self, source: Any, sha256: str | None = None) -> Placed:
        """Store bytes, or those of the file at a path; durable when this returns."""

    def open(self, uri: str) -> BinaryIO:
        """The bytes as a file, checked while they are read."""

    def read(self, uri: str, limit: int | None = None) -> bytes:
        """All of the bytes, checked."""

    def exists(self, uri: str) -> bool:
        """Is something stored under this URI."""


Referenced = Callable[[Iterable[str]], set[str]]
"""Which of these URIs are named by anything that was committed.

`Place` and this are what places for artifacts offer, said again: rooms in one line know nothing of each other.
"""


class Collecting(Protocol):
    """How bytes that nobody names are removed from a place."""

    def __call__(self, place: Any, referenced: Referenced, older_s: float, *, dry_run: bool) -> tuple[int, int]:
        """How many were, or would be, and their bytes."""


class Filed(NamedTuple):
    """The address of a value that is kept as a file, as the JSON that stands for it."""

    raw: msgspec.Raw


def raw(field: str, value: Any) -> msgspec.Raw:
    """A JSON value of the caller's, as canonical bytes. Raises `Invalid`."""
    if isinstance(value, Filed):
        return value.raw
    if value is None:
        return msgspec.Raw(b"null")
    text = payload.encoded(field, value)
    if payload.is_filed(text):
        raise payload.taken_mark(field)
    return msgspec.Raw(text)


def place_name(place: Place) -> str:
    """The folder, or the bucket, in full."""
    return str(getattr(place, "folder", place))


class Files:
    """The place of one client, opened when it is first needed."""

    def __init__(self, opening: Callable[[], Place] | None, collecting: Collecting | None = None) -> None:
        self._opening = opening
        self._collecting = collecting
        self._place: Place | None = None

    @property
    def place(self) -> Place:
        """Where bytes are kept. Raises `Invalid` where this client has no place for them."""
        if self._place is None:
            if self._opening is None:
                raise Invalid(
                    "artifacts: this client has no place for bytes; open it by relet.connect(url)", field="artifacts"
                )
            self._place = self._opening()
        return self._place

    @property
    def where(self) -> str:
        """The folder, or the bucket, in full."""
        return place_name(self.place)

    def exists(self, uri: str) -> bool:
        """Are the bytes of an address in their place."""
        return self.place.exists(uri)

    def collect(self, referenced: Referenced, older_s: float, *, dry_run: bool) -> tuple[int, int]:
        """Remove what nobody names and was put `older_s` ago: how many, and their bytes. Raises `Invalid`."""
        place = self.place
        if self._collecting is None:
            raise Invalid("artifacts: this client cannot collect; open it by relet.connect(url)", field="artifacts")
        return self._collecting(place, referenced, older_s, dry_run=dry_run)

    def filed(self, field: str, value: Any) -> Filed:
        """A JSON value to be kept: as it is, or from some size on as the address of a file that holds it."""
        encoded = raw(field, value)
        text = bytes(encoded)
        if len(text) < limits.FILE_BYTES_MIN or isinstance(value, Filed) or self._opening is None:
            return Filed(encoded)
        kept = self.place.put(text)
        return Filed(msgspec.Raw(f'{payload.FILED}{kept.sha256}","size":{kept.size}}}'.encode()))

    def fetched(self, encoded: msgspec.Raw | bytes | str) -> Any:
        """A kept JSON value, wherever it is. Raises what the place says of a damaged or missing file."""
        text = encoded.encode() if isinstance(encoded, str) else bytes(encoded)
        found = payload.ADDRESS.fullmatch(text) if payload.is_filed(text) else None
        return decode(text if found is None else self.place.read(f"artifact:{found[1].decode()}"))

    def seen(self, value: Any) -> Any:
        """As `whole`, for looking at many: where the file is gone or damaged, its address stands for it."""
        try:
            return self.whole(value)
        except Error:
            return value

    def whole(self, value: Any) -> Any:
        """A decoded value, read from its file where it is the address of one."""
        if isinstance(value, dict) and value.keys() == {"relet:artifact", "size"}:
            digest = value["relet:artifact"]
            return decode(self.place.read(f"artifact:{digest}")) if isinstance(digest, str) else value
        return value
