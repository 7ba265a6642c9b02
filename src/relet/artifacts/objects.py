"""Artifacts in a bucket: `sha256/<digest>/<name>`, where each name is written once and never again.

A bucket has no lock and cannot remove on a condition. So nothing there is ever made young again: bytes that are
stored again, once theirs are too old to be relied on, get another copy under a name of its own. An old copy is then
old for ever, and whoever decided to remove it may be as slow as it likes.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

from relet.artifacts import verified
from relet.artifacts.failures import missing, unusable
from relet.artifacts.pieces import Pieces
from relet.artifacts.place import NOTHING, Bytes, Collected, Path, Stored
from relet.artifacts.source import PIECE_BYTES, Source
from relet.artifacts.uri import digest_of, given_digest, uri_of
from relet.artifacts.verified import VerifiedReader
from relet.core.border import duration_ms, invalid
from relet.core.errors import Invalid, Unavailable
from relet.core.limits import ARTIFACT_REUSE_MS_MAX, ARTIFACT_WHOLE_BYTES_MAX, SECOND_MS

try:
    import obstore
    from obstore import exceptions
    from obstore.store import MemoryStore, ObjectStore, from_url
except ModuleNotFoundError as absent:
    raise Invalid(
        "artifacts: a bucket needs the package obstore → pip install 'relet[objects]'", field="artifacts"
    ) from absent

ROOT: Final = "sha256"
PART_BYTES: Final = 8 << 20
PARTS_AT_ONCE: Final = 4
# A stream of GiB is one request, whose time counts as a whole.
CLIENT_OPTIONS: Final = {"connect_timeout": "5s", "timeout": "1h"}
_KEY: Final = re.compile(rf"{ROOT}/([0-9a-f]{{64}})/[0-9a-f]{{32}}")
_SECRET: Final = re.compile(r"\?\S*")
"""The query of a URL, where some services have their signatures."""
_LOOKS: Final = 3


class Copy(NamedTuple):
    """One object: where it is, how many bytes it has, when it was written (seconds since 1970, by the bucket)."""

    path: str
    size: int
    written_s: float


def open_bucket(url: str, config: Mapping[str, Any]) -> ObjectStore:
    """The bucket that a URL names; `Invalid` when obstore cannot make anything of it."""
    try:
        if url.startswith("memory:"):
            return MemoryStore()
        settings = dict(config)
        client = {**CLIENT_OPTIONS, **settings.pop("client_options", {})}
        retries = settings.pop("retry_config", None)
        # Its types know the settings of each service apart; here they are whatever the user set.
        make: Callable[..., ObjectStore] = from_url
        return make(url, config=settings, client_options=client, retry_config=retries)
    except exceptions.BaseError as wrong:
        raise invalid("artifacts", f"{url} cannot be used: {_said(wrong)}") from wrong


class ObjectArtifacts:
    """A bucket, or the part of one below a prefix. Retries are obstore's; every verb is safe to repeat."""

    def __init__(self, bucket: ObjectStore, place: str, *, now: Callable[[], float] = time.time) -> None:
        self._bucket = bucket
        self.place: Final = place
        self.now = now

    def __repr__(self) -> str:
        return f"<artifacts in {self.place}>"

    def put(self, source: Bytes | Path, sha256: str | None = None) -> Stored:
        wanted = None if sha256 is None else given_digest("sha256", sha256)
        with Source(source) as opened:
            small = opened.whole() if opened.size <= ARTIFACT_WHOLE_BYTES_MAX else None
            digest, size = opened.known() if small is None else (hashlib.sha256(small).hexdigest(), len(small))
            opened.confirm(digest, wanted)
            with self._telling():
                if not any(one.size == size and self._is_young(one) for one in self._copies(digest)):
                    self._upload(opened, small, digest, size)
        return Stored(uri_of(digest), digest, size)

    def _upload(self, source: Source, small: bytes | None, digest: str, size: int) -> None:
        path = _new_path(digest)
        if small is not None:
            # It may exist by an earlier try of this very request, whose answer was lost: nobody else has this name.
            with suppress(exceptions.AlreadyExistsError):
                obstore.put(self._bucket, path, small, mode="create", use_multipart=False)
        else:
            pieces = source.unchanged(digest, size)
            obstore.put(
                self._bucket, path, pieces, use_multipart=True, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
            )
        stored = obstore.head(self._bucket, path)
        if stored["size"] != size:
            obstore.delete(self._bucket, path)
            raise unusable(self.place, f"it kept {stored['size']:,} of {size:,} bytes; they were removed. Try again")
        if not self._is_young(_copy(stored)):
            # Some services count the age of a large object from the beginning of its upload.
            obstore.copy(self._bucket, path, _new_path(digest), overwrite=True)
            obstore.delete(self._bucket, path)

    def open(self, uri: str) -> BinaryIO:
        return verified.opened(self._reader(uri))

    def read(self, uri: str, limit: int | None = None) -> bytes:
        return verified.whole(self._reader(uri), limit)

    def _reader(self, uri: str) -> VerifiedReader:
        digest = digest_of(uri)
        with self._telling():
            for _ in range(_LOOKS):
                if not (copies := self._copies(digest)):
                    break
                try:
                    got = obstore.get(self._bucket, copies[0].path)
                except FileNotFoundError:
                    continue  # a collection has just removed it, and left a newer one or none
                stream = Pieces(iter(got.stream(PIECE_BYTES)), self._telling)
                size = got.meta["size"]
                return VerifiedReader(stream.fill, stream.close, size=size, digest=digest, place=self.place)
        raise missing(digest, self.place)

    def exists(self, uri: str) -> bool:
        digest = digest_of(uri)
        with self._telling():
            return bool(self._copies(digest))

    def delete(self, uri: str) -> None:
        digest = digest_of(uri)
        with self._telling():
            self._remove(self._copies(digest))

    def list(self, older_than_s: float) -> Iterator[Stored]:
        before_s = self.now() - duration_ms("older_than_s", older_than_s) / SECOND_MS
        return self._list(before_s)

    def _list(self, before_s: float) -> Iterator[Stored]:
        for digest, copies in groupby(self._all(), _digest):
            newest = max(copies, key=_written)
            if newest.written_s <= before_s:
                yield Stored(uri_of(digest), digest, newest.size)

    def delete_older(self, uri: str, before_s: float) -> Collected:
        digest = digest_of(uri)
        with self._telling():
            return self._remove([one for one in self._copies(digest) if one.written_s <= before_s])

    def tidy(self, before_s: float) -> Collected:
        """Remove copies that a newer one has replaced, where they are older than an instant."""
        removed = NOTHING
        for _, copies in groupby(self._all(), _digest):
            _newest, *replaced = sorted(copies, key=_written, reverse=True)
            with self._telling():
                removed += self._remove([one for one in replaced if one.written_s <= before_s])
        return removed

    def _remove(self, copies: Sequence[Copy]) -> Collected:
        removed = NOTHING
        for one in copies:
            try:
                obstore.delete(self._bucket, one.path)
            except FileNotFoundError:
                continue
            removed += Collected(1, one.size)
        return removed

    def _copies(self, digest: str) -> Sequence[Copy]:
        """All copies of these bytes, the newest first."""
        found = (_copy(one) for page in obstore.list(self._bucket, f"{ROOT}/{digest}") for one in page)
        return sorted((one for one in found if _KEY.fullmatch(one.path)), key=_written, reverse=True)

    def _all(self) -> Iterator[Copy]:
        pages = iter(obstore.list(self._bucket, ROOT))
        while True:
            with self._telling():
                page = next(pages, None)
            if page is None:
                return
            yield from (one for one in map(_copy, page) if _KEY.fullmatch(one.path))

    def _is_young(self, one: Copy) -> bool:
        return one.written_s > self.now() - ARTIFACT_REUSE_MS_MAX / SECOND_MS

    @contextmanager
    def _telling(self) -> Iterator[None]:
        _check_process()
        try:
            yield
        except (exceptions.BaseError, OSError) as wrong:
            self._tell(wrong)

    def _tell(self, wrong: Exception) -> NoReturn:
        if isinstance(wrong, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError):
            problem = "these credentials may not do this; set others in the environment, or give them the right"
        elif isinstance(wrong, FileNotFoundError):
            problem = "there is no such bucket; make it, or name the one that you meant"
        else:
            problem = "it could not be reached, or failed; nothing was stored that anybody will see. Try again"
        raise unusable(self.place, f"{problem} ({_said(wrong)})") from wrong


def _new_path(digest: str) -> str:
    return f"{ROOT}/{digest}/{os.urandom(16).hex()}"


def _copy(meta: Mapping[str, Any]) -> Copy:
    return Copy(meta["path"], meta["size"], meta["last_modified"].timestamp())


def _digest(one: Copy) -> str:
    return one.path.split("/")[1]


def _written(one: Copy) -> tuple[float, str]:
    return one.written_s, one.path


def _said(wrong: Exception) -> str:
    """The first line of an error, without what may be a secret in it."""
    return _SECRET.sub("?…", str(wrong).partition("\n")[0])[:300]


_user: int | None = None
"""The process that used a bucket first: its threads, which obstore cannot do without, are not in its children."""


def _check_process() -> None:
    global _user  # noqa: PLW0603 - what it says is true of the whole process
    if _user is None:
        _user = os.getpid()
    elif _user != os.getpid():
        raise Unavailable(
            "this process was forked from one that had used a bucket, and would wait for ever; start it by spawn, "
            "or by exec",
            code="RELET-FORKED",
        )
