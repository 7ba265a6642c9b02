"""From one engine to another: both ends of a copy, and the bytes that a store names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from relet.connect import driver, folder_of_server, is_postgres

if TYPE_CHECKING:
    from relet.store.copying import Arriving, Back, Copied, Leaving


def copy_store(
    source: str, target: str, *, told: Callable[[str, int], None], dry_run: bool = False, bytes_too: bool = True,
    artifacts: str | None = None,
) -> Copied:  # fmt: skip
    """Move a store from its file into a database, with the bytes that it names; with findings it stays where it is.

    Those are looked for in `artifacts`, without it where the source has them. `told` hears how far it has come.
    """
    from msgspec.structs import replace

    from relet.artifacts.bringing import bring
    from relet.artifacts.opening import folder_beside, open_artifacts
    from relet.client.files import place_name
    from relet.store.copying import Brought, copy, plan

    with _both_ends(source, target, looks=dry_run) as (leaving, arriving):
        to = open_artifacts(os.environ.get("RELET_ARTIFACTS") or folder_of_server(leaving.store_id))
        given = [artifacts] if artifacts else [os.environ.get("RELET_ARTIFACTS"), folder_beside(leaving.place)]
        places = [open_artifacts(place) for place in given if place]

        def bringing(uris: Iterator[str]) -> Brought:
            if not bytes_too:
                return Brought()
            return Brought(*bring(uris, places, to, lambda n: told("stored bytes", n), dry_run=dry_run))

        done = plan(leaving, arriving, bringing) if dry_run else copy(leaving, arriving, bringing, told)
        return replace(done, artifacts_at=place_name(to)) if bytes_too and not done.finished else done


def copy_back(source: str, target: str, *, dry_run: bool = False) -> Back:
    """Undo a copy that nobody has worked with. Raises `Conflict` where somebody has."""
    from relet.store.copying import back
    from relet.store.sqlite.copy_out import leaving

    _check_ends(source, target)
    with leaving(source, looks=True) as here:
        # Whoever uses what is back already need not end for a second try: there is nothing to be changed.
        looks = dry_run or here.gone() is None
    with _both_ends(source, target, looks=looks) as ends:
        return back(*ends, dry_run=looks)


def _check_ends(source: str, target: str) -> None:
    from relet.core.border import invalid

    if not source.startswith("sqlite:") or not is_postgres(target):
        field = "source" if is_postgres(target) else "target"
        raise invalid(field, "only sqlite:///work.db can be copied, and only into postgresql://host/database")


@contextmanager
def _both_ends(source: str, target: str, *, looks: bool) -> Iterator[tuple[Leaving, Arriving]]:
    _check_ends(source, target)
    with driver():
        from relet.store.postgres.copy_in import arriving
    from relet.store.sqlite.copy_out import leaving

    with arriving(target, None) as there, leaving(source, looks=looks) as here:
        yield here, there
