"""What earlier holders have kept, and which call of a name comes next; the same calls find the same entries."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from relet.core import border, limits
from relet.core.border import invalid
from relet.core.payload import decode, is_filed
from relet.core.rules.memo import Memo, ReadStep
from relet.core.work import Decision, Saving
from relet.core.work_tx import Kept

if TYPE_CHECKING:
    from relet.client.durable.facts import RunFacts
    from relet.client.durable.hands import Hands


class Book:
    """The memo of one run, read from the store when it is first needed."""

    def __init__(self, run: RunFacts, hands: Hands) -> None:
        self._run = run
        self._hands = hands
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], Kept] = {}
        self._decisions: dict[tuple[str, int, str], Decision] = {}
        self._calls: Counter[str] = Counter()
        self._waits: Counter[str] = Counter()
        self._open: set[tuple[str, str]] = set()
        self._read = False
        self.skipped = Saving(steps=0, took_ms=0, cost=0.0)

    def begin(self, name: str, key: Any) -> str:
        """The slot of a step that is called now. Raises `Invalid` for two at once that cannot be told apart."""
        with self._lock:
            if key is not None:
                slot = f"={border.name('key', key)}"
            elif any(one == name and slot.startswith("#") for one, slot in self._open):
                raise invalid(
                    "key",
                    f"is missing: step {name!r} is under way, and calls of one name that run at the same time can be "
                    "told apart by their key only; give each key=",
                )
            else:
                self._calls[name] += 1
                slot = f"#{self._calls[name]}"
            if (name, slot) in self._open:
                raise invalid("key", f"step {name!r} with this key is under way; call it once, or give another key")
            self._open.add((name, slot))
            return slot

    def end(self, name: str, slot: str) -> None:
        """The call is over."""
        with self._lock:
            self._open.discard((name, slot))

    def next_wait(self, name: str) -> int:
        """Which occurrence of a question this is, from 1."""
        with self._lock:
            self._waits[name] += 1
            return self._waits[name]

    async def kept(self, name: str, slot: str) -> Kept | None:
        """What is kept for a slot; its value may have to be read apart."""
        await self._load()
        return self._kept.get((name, slot))

    async def value(self, kept: Kept) -> Any:
        """The value of a kept step."""
        lease = self._run.lease
        with self._lock:
            before = self.skipped
            self.skipped = Saving(
                steps=before.steps + 1, took_ms=before.took_ms + kept.took_ms, cost=before.cost + (kept.cost or 0.0)
            )
        encoded = kept.value or msgspec.Raw()
        if not encoded:
            ask = ReadStep(handle=lease.belief.grant.handle, name=kept.name, slot=kept.slot)
            encoded = await self._hands.send(lease.send, ask)
        return await self.read(encoded)

    async def read(self, encoded: msgspec.Raw) -> Any:
        """A kept value; one that lies in a file is read where reading may take its time."""
        fetched = self._run.lease.fetched
        return await self._hands.send(fetched, encoded) if is_filed(encoded) else decode(encoded)

    def note(self, kept: Kept) -> None:
        """A step was kept just now; one with a key may be called again by this very run."""
        if not kept.slot.startswith("#"):
            small = kept.value and len(bytes(kept.value)) <= limits.MEMO_BYTES_MAX
            with self._lock:
                self._kept[kept.name, kept.slot] = (
                    kept if small else msgspec.structs.replace(kept, value=msgspec.UNSET)
                )

    async def decision(self, name: str, n: int, digest: str) -> Decision | None:
        """The answer to this very question, whoever asked it."""
        await self._load()
        return self._decisions.get((name, n, digest))

    async def _load(self) -> None:
        if self._read:
            return
        ask = Memo(handle=self._run.lease.belief.grant.handle)
        while ask.after is not None or ask.decisions_after is not None:
            page = await self._hands.send(self._run.lease.send, ask)
            self._kept.update(((kept.name, kept.slot), kept) for kept in page.steps)
            self._decisions.update(((one.name, one.n, one.digest), one) for one in page.decisions)
            ask = msgspec.structs.replace(ask, after=page.cursor, decisions_after=page.decisions_cursor)
        self._read = True
