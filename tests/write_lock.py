"""Keep the write lock of a store's file, as a program that forgot a transaction would."""

import contextlib

import apsw


@contextlib.contextmanager
def write_lock_held(db):
    connection = apsw.Connection(db.place)
    connection.set_busy_timeout(5_000)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def is_free(db):
    """Could somebody write now."""
    connection = apsw.Connection(db.place)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except apsw.BusyError:
        return False
    finally:
        connection.close()
    return True
