"""Guards for targets of your own: what shows an older token is refused where the write lands, and leaves nothing.

Every fence has two verbs. `raise_to(resource, token)` is the first act of a new holder: once it has returned, no
smaller token is ever accepted for that resource. `write(resource, token)` is a block that gets the target, and that
raises `StaleToken`, with nothing written, when a larger token was seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relet.fences.files import FileFence
    from relet.fences.git import GitFence
    from relet.fences.http import FenceMiddleware, HttpFence, fence_headers
    from relet.fences.objects import ObjectFence
    from relet.fences.postgres import PostgresFence
    from relet.fences.redis import RedisFence
    from relet.fences.sqlite import SqliteFence

_ROOMS = {
    "FenceMiddleware": "http", "FileFence": "files", "GitFence": "git", "HttpFence": "http", "ObjectFence": "objects",
    "PostgresFence": "postgres", "RedisFence": "redis", "SqliteFence": "sqlite", "fence_headers": "http",
}  # fmt: skip
"""One file for each target, loaded when first asked for: a fence for SQLite needs no driver of PostgreSQL."""
_EXTRAS = {"objects": "objects", "postgres": "postgres", "redis": "redis"}

__all__ = [
    "FenceMiddleware", "FileFence", "GitFence", "HttpFence", "ObjectFence", "PostgresFence", "RedisFence",
    "SqliteFence", "fence_headers",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        from importlib import import_module

        room = _ROOMS[name]
        try:
            value = globals()[name] = getattr(import_module(f"relet.fences.{room}"), name)
        except ModuleNotFoundError as absent:
            package = (absent.name or "").partition(".")[0]
            if room not in _EXTRAS or package == "relet":
                raise
            raise ModuleNotFoundError(
                f"{name} needs {package}, which is not installed → pip install 'relet[{_EXTRAS[room]}]'", name=package
            ) from absent
        return value
    raise AttributeError(f"module 'relet.fences' has no attribute {name!r}")
