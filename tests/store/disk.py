"""A disk that fails when it is told to: every file that SQLite opens meanwhile goes through it."""

from contextlib import contextmanager

import apsw

BELOW = apsw.vfs_names()[0]


class Disk(apsw.VFS):
    """`fails` is asked before each write and sync: an error to raise, or None."""

    def __init__(self):
        super().__init__("failing", BELOW, makedefault=True)
        self.fails = None
        self.synced = []

    def xOpen(self, name, flags):  # noqa: N802 - a name of the driver
        return File(self, name, flags)


class File(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        super().__init__(BELOW, name, flags)
        self.disk = disk
        self.only_read = bool(flags[0] & apsw.SQLITE_OPEN_READONLY)
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def xWrite(self, data, offset):  # noqa: N802 - likewise
        self._may("write")
        super().xWrite(data, offset)

    def xSync(self, flags):  # noqa: N802 - likewise
        self._may("sync")
        self.disk.synced.append(self.name.rpartition("/")[2])
        super().xSync(flags)

    def xLock(self, level):  # noqa: N802 - likewise
        try:
            super().xLock(level)
        except apsw.IOError:
            if not self.only_read:
                raise
            raise apsw.BusyError from None  # asked for when it is closed; SQLite itself makes nothing of that

    def _may(self, what):
        if self.disk.fails is not None and self.name.endswith("-wal") and (error := self.disk.fails(what)):
            raise error


@contextmanager
def failing_disk():
    disk = Disk()
    try:
        yield disk
    finally:
        disk.fails = None
        disk.unregister()


def once(what, error):
    """Fails the first time that this is done."""
    left = [error]
    return lambda done: left.pop() if done == what and left else None


def always(what, error):
    return lambda done: error if done == what else None
