"""Fences with one fault each, which the kit must find."""

import contextlib
import os

from relet.core.errors import StaleToken
from relet.fences import FileFence
from relet.fences.admission import busy
from tests.fences.subjects import on_files


class LooksFirst(FileFence):
    """Compares at the start of the block alone."""

    @contextlib.contextmanager
    def write(self, resource, token):
        self.raise_to(resource, token)
        with self._temporary(resource) as file:
            yield file
            file.close()
            os.replace(file.name, self._folder / resource)


class Forgets(FileFence):
    """Keeps what it has seen in its process."""

    def _admit(self, resource, token):
        self.seen = getattr(self, "seen", {})
        if self.seen.setdefault(resource, token) > token:
            raise StaleToken("late", reason="superseded", token=token, current_token=self.seen[resource])
        self.seen[resource] = token


class RefusesEqual(FileFence):
    """Lets each token write once."""

    def raise_to(self, resource, token):
        kept = self._inner / f"{resource}.token"
        if kept.exists() and int(kept.read_text()) == token:
            raise StaleToken("late", reason="superseded", token=token, current_token=token)
        super().raise_to(resource, token)


class NeverRaises(FileFence):
    """Says so, and does not."""

    def raise_to(self, resource, token):
        pass


class WritesAtOnce(FileFence):
    """What was written before an exception stays."""

    @contextlib.contextmanager
    def write(self, resource, token):
        with self._locked(resource):
            self._admit(resource, token)
            with (self._folder / resource).open("wb") as file:
                yield file


class OneForAll(FileFence):
    """Has one fence for all resources."""

    def _admit(self, resource, token):
        super()._admit("all", token)


class TakesAnything(FileFence):
    """Sees a number in whatever it is given."""

    def raise_to(self, resource, token):
        super().raise_to(resource, int(token or 1))


class StaysLocked(FileFence):
    """Its lock outlives the process that took it."""

    def raise_to(self, resource, token):
        if (self._inner / f"{resource}.held").exists():
            raise busy("here", resource, 0, "a file that nobody removes")
        super().raise_to(resource, token)

    @contextlib.contextmanager
    def write(self, resource, token):
        self.raise_to(resource, token)
        held = self._inner / f"{resource}.held"
        held.touch()
        try:
            with self._temporary(resource) as file:
                yield file
                os.replace(file.name, self._folder / resource)
        finally:
            held.unlink()


@contextlib.contextmanager
def on_broken(kind, folder):
    with on_files(folder) as subject:
        yield type(subject)(kind(folder, patience="0.5s"), subject.put, subject.read, subject.put_bare)


@contextlib.contextmanager
def on_guarded_bare(folder):
    """No fault, but what is given for the control goes through the fence too."""
    with on_files(folder) as subject:

        def put_bare(resource, text):
            with subject.fence.write(resource, 2 if text == "new" else 1) as file:
                file.write(text.encode())

        yield type(subject)(subject.fence, subject.put, subject.read, put_bare)
