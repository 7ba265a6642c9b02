"""Which handlers of an app a worker runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relet.core.border import invalid

if TYPE_CHECKING:
    from relet.worker.app import App, Handler


def chosen(app: App, queues: str | list[str] | None) -> dict[str, Handler]:
    """By kind, those of these queues; all of them where none is named. Raises `Invalid`."""
    if not app.handlers:
        raise invalid("app", 'has no handlers; add one with @app.task("kind")')
    if queues is None:
        return dict(app.handlers)
    wanted = [queues] if isinstance(queues, str) else list(queues)
    found = {kind: one for kind, one in app.handlers.items() if one.queue in wanted}
    known = sorted({one.queue for one in app.handlers.values()})
    for name in wanted:
        if name not in known:
            raise invalid("queues", f"no handler works on {name!r}; there are {', '.join(known)}")
    return found
