"""A fence in an object store (S3, GCS, Azure, or any that keeps its conditions): publish through one pointer.

One small object for each resource, the pointer, holds the token and the names of what was published. It is replaced
only if it is still the one that was read. Data objects are new ones each time, and visible by the pointer alone, so a
late holder leaves objects that nobody sees. Nothing is held: a stopped holder blocks nobody.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from relet.core import border, limits
from relet.core.errors import DAMAGED, Invalid, NotFound, OutcomeUnknown, Unavailable
from relet.core.holding import check_held
from relet.fences.admission import admitted, spelled, stale, undone

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore

WHERE: Final = "ObjectFence"
PROBE: Final = "relet-probe"
FAILED: Final = (BaseError, OSError)


class Pointer(msgspec.Struct, frozen=True):
    """What the pointer says. The nonce makes two that say the same differ: an etag may be made of the bytes alone."""

    token: int = 0
    published_by: int | None = None
    objects: dict[str, str] = {}
    nonce: str = ""


class Published:
    """What a resource holds: `.token` of the holder who published it, `.names`, and the bytes of each."""

    def __init__(self, store: ObjectStore, pointer: Pointer) -> None:
        self._store = store
        self._keys = pointer.objects
        self.token = pointer.published_by
        self.names = tuple(pointer.objects)

    def get(self, name: str) -> bytes:
        """The bytes of one object. Raises `NotFound` for a name that was not published."""
        if name not in self._keys:
            raise NotFound(f"{WHERE}: no {border.shown(name)} was published; there are {list(self.names)}")
        try:
            return bytes(self._store.get(self._keys[name]).bytes())
        except FAILED as wrong:
            raise undone(WHERE, _brief(wrong)) from wrong


class ObjectTarget:
    """What a block writes into: new objects, which become visible together when the block ends."""

    def __init__(self, store: ObjectStore, place: str, token: int, before: Pointer) -> None:
        self._store = store
        self._folder = f"{place}/{token}"
        self._before = before.objects
        self.objects: dict[str, str] = {}

    def put(self, name: str, data: bytes) -> None:
        """Upload one object at once, under a key of its own; a second one of the same name takes its place."""
        name = border.name("name", name)
        self._room_for(name)
        key = f"{self._folder}/{secrets.token_hex(16)}"
        try:
            self._store.put(key, data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            pass  # the key is ours alone: an earlier try of this very request has arrived
        except FAILED as wrong:
            raise undone(WHERE, _brief(wrong)) from wrong
        self.objects[name] = key

    def keep(self, name: str) -> None:
        """Publish an object again that the version before has, without sending it. Raises `NotFound`."""
        if name not in self._before:
            raise NotFound(f"{WHERE}: the version before has no {border.shown(name)}; it has {list(self._before)}")
        self._room_for(name)
        self.objects[name] = self._before[name]

    def _room_for(self, name: str) -> None:
        if name not in self.objects and len(self.objects) >= limits.FENCE_ITEMS_MAX:
            raise border.invalid(
                "name", f"is one more than the {limits.FENCE_ITEMS_MAX} objects that one write may have"
            )


class ObjectFence:
    """Guards resources below `prefix` in a store of obstore: `S3Store`, `GCSStore`, `AzureStore` and others.

    Before its first write it proves that the store keeps its conditions (`probe`). A local folder does not: use
    `FileFence` there.
    """

    def __init__(self, store: ObjectStore, *, prefix: str = "") -> None:
        self._store = store
        self._prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self._probed = False

    def raise_to(self, resource: str, token: int) -> None:
        """Accept nothing smaller than this token from now on. Raises `StaleToken`, `Unavailable`, `Invalid`."""
        resource, token = admitted(resource, token)
        self._move(resource, token, None)

    @contextlib.contextmanager
    def write(self, resource: str, token: int) -> Iterator[ObjectTarget]:
        """A target with `put(name, data)`; at the end of the block the resource holds these objects and no others.

        Raises `StaleToken` before the block or at its end, `OutcomeUnknown` when the last answer was lost.
        """
        resource, token = admitted(resource, token)
        before = self._move(resource, token, None)
        target = ObjectTarget(self._store, self._place(resource), token, before)
        yield target
        self._move(resource, token, target.objects)

    def read(self, resource: str) -> Published | None:
        """What was published last; None before anything was."""
        pointer, _ = self._read(border.name("resource", resource))
        return None if pointer.published_by is None else Published(self._store, pointer)

    def probe(self) -> None:
        """Prove on a key of its own that the store refuses a second create, and an update of what has changed.

        Raises `Invalid` for a store that does not: it would let two holders overwrite each other.
        """
        key = f"{self._prefix}{PROBE}/{secrets.token_hex(16)}"
        try:
            first = self._put(key, b"1", "create")
            self._must_refuse(key, "create", "a second create of the same key")
            self._put(key, b"2", first)
            self._must_refuse(key, first, "an update under an etag that is no longer true")
        except NotImplementedError as wrong:
            raise Invalid(
                f"store: {type(self._store).__name__} offers no conditional update, so it cannot be guarded by a "
                "pointer; for a folder on a local disk use FileFence",
                field="store", engine=str(wrong).partition("\n")[0],
            ) from wrong  # fmt: skip
        except FAILED as wrong:
            raise undone(WHERE, _brief(wrong)) from wrong
        finally:
            with contextlib.suppress(*FAILED):  # rights to delete are not needed for anything else
                self._store.delete(key)
        self._probed = True

    def _must_refuse(self, key: str, mode: PutMode, what: str) -> None:
        try:
            self._put(key, b"3", mode)
        except (AlreadyExistsError, PreconditionError):
            return
        raise Invalid(
            f"store: {type(self._store).__name__} took {what}; such a store cannot keep a late holder out. Use "
            "one that answers 412 to a failed condition, or PostgresFence",
            field="store",
        )

    def _move(self, resource: str, token: int, objects: dict[str, str] | None) -> Pointer:
        """Replace the pointer by one with this token, and these objects unless None; what it says then."""
        if not self._probed:
            self.probe()
        for _ in range(limits.FENCE_TRIES):
            now, mode = self._read(resource)
            check_held(token)
            if now.token > token:
                raise stale(WHERE, resource, token, now.token)
            if objects is None and now.token == token:
                return now
            after = Pointer(token, now.published_by, now.objects, secrets.token_hex(16))
            if objects is not None:
                after = msgspec.structs.replace(after, published_by=token, objects=objects)
            if self._replaced(resource, after, mode):
                return after
        raise Unavailable(
            f"{WHERE}: {resource!r} changed {limits.FENCE_TRIES} times while it was to be changed here; nothing of "
            "yours is visible, try again",
            code="RELET-FENCE-BUSY", resource=resource,
        )  # fmt: skip

    def _replaced(self, resource: str, after: Pointer, mode: PutMode) -> bool:
        try:
            self._put(self._key(resource), msgspec.json.encode(after), mode)
        except (AlreadyExistsError, PreconditionError):
            # Perhaps by an earlier try of this very request, whose answer was lost on its way.
            return self._read(resource)[0].nonce == after.nonce
        except FAILED as wrong:
            with contextlib.suppress(Unavailable):
                if self._read(resource)[0].nonce == after.nonce:
                    return True
            raise OutcomeUnknown(
                f"{WHERE}: the answer about {resource!r} was lost ({_brief(wrong)}); it may still arrive. Repeat the "
                "block under the same token, or look",
                code="RELET-COMMIT", resource=resource,
            ) from wrong  # fmt: skip
        return True

    def _read(self, resource: str) -> tuple[Pointer, PutMode]:
        """What the pointer says, and on which condition it may be replaced."""
        try:
            found = self._store.get(self._key(resource))
            pointer = msgspec.json.decode(bytes(found.bytes()), type=Pointer)
        except FileNotFoundError:
            return Pointer(), "create"
        except msgspec.DecodeError as wrong:
            raise Unavailable(
                f"{WHERE}: {self._key(resource)} is no pointer of relet ({wrong}); it was left as it is",
                code=DAMAGED, resource=resource,
            ) from wrong  # fmt: skip
        except FAILED as wrong:
            raise undone(WHERE, _brief(wrong)) from wrong
        return pointer, _condition(found.meta)

    def _put(self, key: str, data: bytes, mode: PutMode) -> PutMode:
        return _condition(self._store.put(key, data, mode=mode, use_multipart=False))

    def _place(self, resource: str) -> str:
        return f"{self._prefix}{spelled(resource)}"

    def _key(self, resource: str) -> str:
        return f"{self._place(resource)}/pointer.json"


def _condition(facts: Any) -> PutMode:
    """The versions of an object; stores look at one or at both."""
    return {name: facts[name] for name in ("e_tag", "version") if facts.get(name)}  # type: ignore[return-value]


def _brief(wrong: Exception) -> Exception:
    return type(wrong)(str(wrong).partition("\n")[0])
