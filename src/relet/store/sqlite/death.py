"""The death of a holder on this machine, proved by its lock: its leases end at once, and not with their ttl."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Final

from relet.core.bond import Bond
from relet.core.errors import Error
from relet.core.operation import Operation
from relet.core.rules.bury import Bind, Buried, Bury, FindHolders, Forget, find_holders, forget
from relet.core.rules.bury import bind as bind_rule
from relet.core.rules.bury import bury as bury_rule
from relet.core.tx import HolderRow
from relet.store.sqlite.bonds import Proof
from relet.store.sqlite.engine import SqliteStore

# Not in the catalog: a request by itself is no proof, and whoever could send one could end anybody's lease.
BIND: Final = Operation("bind", Bind, None, bind_rule, "Name the lock of a holder.")
HOLDERS: Final = Operation("holders", FindHolders, list[HolderRow], find_holders, "All locks.", writes=False)
BURY: Final = Operation("bury", Bury, Buried, bury_rule, "End what a dead process held.")
FORGET: Final = Operation("forget", Forget, bool, forget, "Forget the lock of a holder.")


def bind(store: SqliteStore) -> Bond | None:
    """The lock of this process on this store; None where none can be had."""
    bonds = store.identity.bonds
    with bonds.binding():
        if bonds.mine is not None and bonds.pid == os.getpid():
            return bonds.mine
        if (made := bonds.make()) is None:
            return None
        bond, row = made
        try:
            # Only now, when it is held: whoever finds the row finds it held or dead.
            _ask(store, BIND, Bind(row=row))
        except BaseException:
            bonds.unmake()  # no row names it, so its death would prove nothing to anybody
            raise
    with contextlib.suppress(Error):  # others will do that
        bonds.remove_strays({one.lock for one in _ask(store, HOLDERS, FindHolders())})
    return bond


def bury(store: SqliteStore) -> int:
    """End the leases of all processes that are proven to be dead; answers how many.

    The proof is held while they are ended. Nothing is waited for, and nothing is written while all are alive.
    """
    if store.path is None:
        return 0
    bonds, n = store.identity.bonds, 0
    with bonds.looking() as alone:
        for row in _rows(store) if alone else []:
            if bonds.mine is not None and bonds.mine.lock == row.lock:
                continue
            proof = bonds.proof(row)
            if proof is Proof.LIVES:
                continue
            try:
                if proof is Proof.NOTHING:
                    _ask(store, FORGET, Forget(lock=row.lock, anyhow=True))
                else:
                    n += _bury_one(store, row.lock)
            finally:
                bonds.drop(row.lock)
            if proof is Proof.DEAD or row.boot_id != bonds.boot_id:
                bonds.remove(row.lock)
    return n


def _rows(store: SqliteStore) -> list[HolderRow]:
    """All locks; read again only when somebody has written since."""
    bonds = store.identity.bonds
    version = store.version()
    if version != bonds.version:
        bonds.rows, bonds.version = _ask(store, HOLDERS, FindHolders()), version
        bonds.keep_only({row.lock for row in bonds.rows})
    return bonds.rows


def leave(store: SqliteStore) -> None:
    """Take back the lock of this process, unless something is still held under it: its death will prove that."""
    bonds = store.identity.bonds
    with bonds.binding(), contextlib.suppress(Error):
        if bonds.mine is not None and bonds.pid == os.getpid() and _ask(store, FORGET, Forget(lock=bonds.mine.lock)):
            bonds.unmake()


def _bury_one(store: SqliteStore, lock: str) -> int:
    n, more = 0, True
    while more:
        buried: Buried = _ask(store, BURY, Bury(lock=lock))
        n, more = n + buried.n, buried.more
    return n


def _ask(store: SqliteStore, operation: Operation, ask: Any) -> Any:
    return store.answer(operation, ask, "")
