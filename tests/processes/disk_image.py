"""What a disk may hold after the power went: of what was not synced, any part, in sectors, in any order."""

import random
from pathlib import Path

from tests.processes.traced import Cut, Made, Rename, Sync, Unlink, Write

SECTOR = 512


class Content:
    """One file: what is on disk for certain, and what was done to it since."""

    def __init__(self):
        self.kept = bytearray()
        self.pending = []
        self.length = 0
        """As its programs see it."""

    def do(self, index, event):
        if isinstance(event, Write):
            at = self.length if event.offset is None else event.offset
            self.length = max(self.length, at + len(event.data))
            self.pending.append((index, event._replace(offset=at)))
        else:
            self.length = event.length
            self.pending.append((index, event))

    def sync(self, since):
        for index, event in self.pending:
            if index < since:
                _apply(self.kept, event, None)
        self.pending = [entry for entry in self.pending if entry[0] >= since]

    def after_a_cut(self, chance):
        content = bytearray(self.kept)
        for _, event in self.pending:
            _apply(content, event, chance)
        return content


class Disk:
    """Files by name, as programs see them and as they are for certain on disk."""

    def __init__(self):
        self._seen = {}
        self._kept = {}
        self._renames = []
        """Changes of names since their folder was synced: (index, folder, changes)."""

    def do(self, index, event):
        match event:
            case Write() | Cut():
                self._made(index, event.path).do(index, event)
            case Made():
                self._made(index, event.path)
            case Unlink():
                self._seen.pop(event.path, None)
                self._name(index, {event.path: None})
            case Rename():
                content = self._seen[event.to] = self._seen.pop(event.path)
                self._name(index, {event.path: None, event.to: content})
            case Sync():
                if (content := self._seen.get(event.path)) is not None:
                    content.sync(event.since)
                else:
                    self._sync_folder(event.path, event.since)

    def image(self, chance):
        """The files after a power cut; `chance` decides what of the unsynced has reached the disk."""
        names = dict(self._kept)
        for _, _, changes in self._renames:
            if chance.kept():
                _rename(names, changes)
        return {path: content.after_a_cut(chance) for path, content in names.items()}

    def _made(self, index, path):
        if path not in self._seen:
            self._seen[path] = Content()
            self._name(index, {path: self._seen[path]})
        return self._seen[path]

    def _name(self, index, changes):
        self._renames.append((index, str(Path(next(iter(changes))).parent), changes))

    def _sync_folder(self, folder, since):
        left = []
        for index, where, changes in self._renames:
            if where == folder and index < since:
                _rename(self._kept, changes)
            else:
                left.append((index, where, changes))
        self._renames = left


class Chance:
    """How much of what was not synced has reached the disk: a share of its sectors."""

    def __init__(self, share, seed=0):
        self._share = share
        self._random = random.Random(seed)

    def kept(self):
        return self._random.random() < self._share

    def sectors(self, length):
        """All of a write, none of it, or each of its sectors by itself."""
        if self._share in (0, 1) or self._random.random() < 0.5:
            return [self.kept()] * length
        return [self.kept() for _ in range(length)]


def _rename(names, changes):
    for path, content in changes.items():
        if content is None:
            names.pop(path, None)
        else:
            names[path] = content


def _apply(content, event, chance):
    if isinstance(event, Cut):
        if chance is None or chance.kept():
            del content[event.length :]
            content.extend(bytes(event.length - len(content)))
        return
    start, end = event.offset, event.offset + len(event.data)
    first = start // SECTOR
    sectors = None if chance is None else chance.sectors((end - 1) // SECTOR - first + 1)
    if sectors is not None and not any(sectors):
        return
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if sectors is None or all(sectors):
        content[start:end] = event.data
        return
    for number, kept in enumerate(sectors, first):
        if kept:
            low, high = max(start, number * SECTOR), min(end, (number + 1) * SECTOR)
            content[low:high] = event.data[low - start : high - start]
