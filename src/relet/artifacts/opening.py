"""From a path or a URL to a place for artifacts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from relet.artifacts.local import LocalArtifacts
from relet.artifacts.place import ArtifactStore
from relet.core.border import invalid, shown

BUCKETS: Final = frozenset(["s3", "gs", "az", "memory"])
_FORMS: Final = "a folder, file:///srv/artifacts, s3://bucket/prefix, gs://…, az://… or memory://"


def folder_beside(database: str | os.PathLike[str]) -> Path:
    """The default place of a SQLite file: a folder beside it, so that both are moved together."""
    path = Path(database)
    return path.with_name(f"{path.name}-artifacts")


def open_artifacts(
    place: str | os.PathLike[str], *, config: Mapping[str, Any] | None = None, now: Callable[[], float] = time.time
) -> ArtifactStore:
    """The place that a path or a URL means; nothing is made or asked for before it is used.

    Buckets need `pip install 'relet[objects]'`, and take their credentials from the environment as the tools of
    their makers do, or from `config` (the settings of obstore).
    """
    text = _text_of(place)
    if isinstance(place, os.PathLike) or "://" not in text:
        return LocalArtifacts(text, now=now)
    scheme = text.partition("://")[0]
    if scheme == "file":
        return LocalArtifacts(_folder_of(text), now=now)
    if scheme not in BUCKETS:
        raise invalid("artifacts", f"{shown(scheme)} is no known scheme; give {_FORMS}")
    _check_bucket(text, scheme)
    from relet.artifacts.objects import ObjectArtifacts, open_bucket

    return ObjectArtifacts(open_bucket(text, config or {}), text, now=now)


def _text_of(place: Any) -> str:
    text = os.fspath(place) if isinstance(place, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise invalid("artifacts", f"{shown(place)} is no place; give {_FORMS}")
    try:
        clean = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        clean = False
    if not clean:
        raise invalid("artifacts", f"{shown(place)} holds what no path can have; give {_FORMS}")
    return text


def _folder_of(url: str) -> str:
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or path in ("", "/") or "\0" in path:
        raise invalid("artifacts", f"{shown(url)} names no folder; write file:///srv/artifacts, without a host")
    return path


def _check_bucket(url: str, scheme: str) -> None:
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not shown: what stands there is often a secret.
        raise invalid(
            "artifacts",
            f"the {scheme}:// URL carries credentials or options; leave them out, and set them in the environment",
        )
    if scheme != "memory" and not parts.netloc:
        raise invalid("artifacts", f"{shown(url)} names no bucket; write {scheme}://bucket/prefix")
