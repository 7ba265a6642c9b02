"""A service begins over a file: until now nobody could renew through it, which is an outage for all that did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from relet.store.migrate import check_writer
from relet.store.secrets import SECRETS_SERVED, Secrets
from relet.store.sqlite.connect import note_outage
from relet.store.sqlite.gone import check_here
from relet.store.sqlite.runner import SQL

if TYPE_CHECKING:
    from relet.store.sqlite.engine import SqliteStore


def begin_to_serve(store: SqliteStore) -> int:
    """What is open gets a whole ttl from now, before anything is judged; how many leases that were."""

    def work(connection: apsw.Connection) -> int:
        meta: Any = connection.execute(SQL["read_meta"]).fetchone()
        check_here(connection.execute, meta[0])
        check_writer(meta[0])
        at = store.identity.read_clock()
        connection.execute(SQL["extend_all_open"], {"now_ms": at.now_ms})
        extended: int = connection.changes()
        note_outage(connection, at.now_ms, at.wall_ms, "service start")
        return extended

    store.identity.secret = Secrets(store.identity.secret_key, SECRETS_SERVED).secret
    return store.write(work)
