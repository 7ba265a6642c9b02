"""Bring stored bytes from where they are to another place; what is there already is not brought again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO, Final, NamedTuple

from relet.artifacts.place import ArtifactStore
from relet.artifacts.uri import digest_of
from relet.core.errors import Error, NotFound
from relet.core.limits import ARTIFACT_WHOLE_BYTES_MAX, FINDINGS_MAX

DAMAGED: Final = "RELET-ARTIFACT-DAMAGED"
PIECE_BYTES: Final = 1 << 20
TOLD_EACH: Final = 1_000


class Bringing(NamedTuple):
    """What became of it."""

    named: int
    copied: int
    bytes: int
    missing: tuple[str, ...]
    """Addresses of those that are nowhere, or are not what they are named for; a long list is cut."""


def bring(
    uris: Iterable[str], places: Sequence[ArtifactStore], to: ArtifactStore, told: Callable[[int], None], *,
    dry_run: bool = False,
) -> Bringing:  # fmt: skip
    """Each address is durable in its new place before the next; `told` hears how many are done.

    With `dry_run` nothing is brought, and bytes are only looked for.
    """
    named = copied = size = 0
    missing: list[str] = []
    for named, uri in enumerate(uris, 1):
        if not to.exists(uri):
            brought = _looked_for(uri, places) if dry_run else _brought(uri, places, to)
            copied, size = copied + (brought is not None), size + (brought or 0)
            if brought is None and len(missing) < FINDINGS_MAX:
                missing.append(uri)
        if named % TOLD_EACH == 0:
            told(named)
    if named % TOLD_EACH:
        told(named)
    return Bringing(named, copied, size, tuple(missing))


def _looked_for(uri: str, places: Sequence[ArtifactStore]) -> int | None:
    return 0 if any(place.exists(uri) for place in places) else None


def _brought(uri: str, places: Sequence[ArtifactStore], to: ArtifactStore) -> int | None:
    """How many bytes; None where nobody has them."""
    for place in places:
        try:
            with place.open(uri) as source:
                return _put(source, to, digest_of(uri))
        except NotFound:
            continue
        except Error as wrong:
            if wrong.code != DAMAGED:
                raise
    return None


def _put(source: BinaryIO, to: ArtifactStore, digest: str) -> int:
    piece = source.read(ARTIFACT_WHOLE_BYTES_MAX + 1)
    if len(piece) <= ARTIFACT_WHOLE_BYTES_MAX:
        return to.put(piece, digest).size
    # Too large to be held in memory.
    with tempfile.NamedTemporaryFile(prefix="relet-", delete=False) as draft:
        try:
            while piece:
                draft.write(piece)
                piece = source.read(PIECE_BYTES)
            draft.close()
            return to.put(draft.name, digest).size
        finally:
            os.unlink(draft.name)
