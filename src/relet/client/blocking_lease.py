"""The blocking lease: one task, held; its verbs, and the block that keeps it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import msgspec

from relet.client import asks, work_asks
from relet.client.belief import Belief
from relet.client.lease import BY_ITS_HOLDER, LEFT_OPEN, STORE_AWAY, HeldLease, LostInBlock, is_store_away
from relet.client.renewal import THREAD, from_beside, renewal
from relet.core import border, limits
from relet.core.backend import OwnTransaction
from relet.core.errors import Error, LeaseLost
from relet.core.model import End, GivenBack, Task
from relet.core.rules.attach import Attach
from relet.core.rules.check import Check
from relet.core.rules.claim import Claim
from relet.core.rules.finish import Ended
from relet.core.rules.memo import Attached, Memo
from relet.core.rules.park import Park
from relet.core.work import Artifact, Decision

if TYPE_CHECKING:
    from relet.client.blocking import Client
    from relet.client.durable.run import Run
    from relet.client.durable.sight import Sight


class Lease(HeldLease):
    """One task, held. Its verbs are sent, and judged by the store alone.

    As a `with` block it renews itself: an exception fails the attempt, KeyboardInterrupt releases it, and a
    block left without an ending verb releases with a warning.
    """

    def __init__(self, client: Client, belief: Belief, following: Claim | None = None) -> None:
        super().__init__(belief, following)
        self._client = client

    def renew(self, ttl: Any = None) -> float:
        """Set the end to a ttl from now; seconds left. Raises `LeaseLost`."""
        return self._renew(ttl, None)

    def _renew(self, ttl: Any, patience_ms: int | None) -> float:
        sent_ms = self._client.clock.fast_ms()
        try:
            answers = self._client.backend.call(renewal([self.belief.grant.handle], ttl), patience_ms=patience_ms)
        except STORE_AWAY:
            self.belief.miss()
            raise
        return self.belief.confirm(answers[0], sent_ms)

    def check(self, need: Any = 0) -> None:
        """Raise `LeaseLost` when it is not yours any more, or is trusted for fewer than `need` seconds.

        Asks this machine's own clock; in doubt it renews first, for as long as the lease is trusted.
        """
        self.belief.require(need)
        if self.belief.is_doubtful():
            with suppress(LeaseLost):  # refused as capped, it is held to its deadline all the same
                self._renew(None, self.belief.patience_ms())
            self.belief.require(need)

    def save(self, value: Any, name: str = "main") -> int:
        """Keep a JSON value for the next holder; how often this name has been saved."""
        return int(
            self.send(asks.save(self.belief.grant.handle, self._client.files.filed("value", value), name)).version
        )

    def load(self, name: str = "main") -> Any:
        """What any holder of the task saved last under the name; None when nothing was."""
        return self.fetched(self._client.backend.call(asks.load(self.belief.grant.handle, name)))

    def attach(self, name: str, source: bytes | str | os.PathLike[str]) -> Artifact:
        """Keep bytes, or those of the file at a path, by name; stored first, and visible once the lease says so."""
        name = work_asks.artifact_name(name)
        stored = self._client.files.place.put(source)
        ask = Attach(
            handle=self.belief.grant.handle, name=name, uri=stored.uri, sha256=stored.sha256, size=stored.size
        )
        artifact: Artifact = self.send(ask)
        return artifact

    def open(self, name: str) -> BinaryIO:
        """What any holder of the task attached last under the name, as a binary file. Raises `NotFound`."""
        ask = Attached(handle=self.belief.grant.handle, name=work_asks.artifact_name(name))
        return self._client.files.place.open(self._client.backend.call(ask).uri)

    def progress(self, note: str) -> None:
        """A note of where the work stands, for whoever looks; no checkpoint."""
        self.send(work_asks.progress(self.belief.grant.handle, note))

    def park(
        self, name: str, kind: str = "approval", ask: Any = None, timeout: Any = None, default: Any = None
    ) -> Ended:
        """End this lease with a question; the task waits without a holder, and costs no attempt.

        `kind` is approval, signal or timer. `default` is the decision (or a signal's payload) that stands once
        `timeout` is over. The next holder reads `answer(name)`.
        """
        return self.parks(work_asks.park(self.belief.grant.handle, name, kind, ask, timeout, default))

    def parks(self, request: Park) -> Ended:
        """End this lease with a question that was made before."""
        return self.ends(End.PARKED, request)

    def answer(self, name: str) -> Decision | None:
        """The newest decision under the name, whoever asked; None while there is none."""
        name = border.name("name", name)
        ask = Memo(handle=self.belief.grant.handle, after=None, name=name)
        newest: Decision | None = None
        while ask.decisions_after is not None:
            page = self._client.backend.call(ask)
            for one in page.decisions:
                # Of several questions under one number, the one that was asked last.
                newest = one if newest is None or one.n >= newest.n else newest
            ask = msgspec.structs.replace(ask, decisions_after=page.decisions_cursor)
        return newest

    def submit(self, name: str, queue: str, input: Any, options: dict[str, Any]) -> Task:
        """Submit a child task under this lease; `Run.submit` says more."""
        child = work_asks.child_id(self.task_id, name)
        inputs = [self._client.files.filed("input", input)]
        made: list[Task] = self.send(asks.submit(queue, inputs, [child], under=self.belief.grant.handle, **options))
        return made[0]

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A short transaction of your own on the store's database, committed only if this lease still holds.

        The lease is judged at its start, and again as its last act before COMMIT. It may last 2 s, or a sixth of
        the shortest ttl held here; past that it is rolled back with `Refused`, as a failure of the work. On SQLite
        the connection is an apsw one; relet's own tables are not written by it.
        """
        client, ask = self._client, Check(handle=self.belief.grant.handle)
        cap_s = client.keeper.shortest_ttl_s(self.belief) * limits.TRANSACTION_SHARE
        try:
            with client.backend.transaction(min(limits.TRANSACTION_S_MAX, cap_s)) as own:
                self._judge(own, ask)
                yield own.connection
                if self.belief.ended is None:
                    self._judge(own, ask)
        except LeaseLost:
            # A lapse that was seen in it was rolled back with it; it is told only once it is written down for good.
            with suppress(Error):
                client.backend.call(ask)
            raise

    def _judge(self, own: OwnTransaction, ask: Check) -> None:
        try:
            own.call(ask)
        except Error as refused:
            self.belief.take_in(refused)
            raise

    def filed(self, field: str, value: Any) -> msgspec.Raw:
        """A value as JSON to be kept, or as the address of a file that holds it."""
        return self._client.files.filed(field, value).raw

    def seen(self, sight: Sight) -> None:
        """Tell the client's witness, if there is one."""
        if self._client.witness is not None:
            self._client.witness(sight)

    def fetched(self, encoded: msgspec.Raw) -> Any:
        """A kept value, wherever it is."""
        return self._client.files.fetched(encoded)

    def _read_input(self) -> Any:
        return self.fetched(self.belief.grant.input)

    @contextmanager
    def run(self) -> Iterator[Run]:
        """A run under this lease, without an App: steps, effects and waits, in a block that keeps the lease.

        A block whose task was parked ends silently, with `run.parked` set: claim the task again once it is answered.
        """
        from relet.client.durable.run import Run, block

        with self, block(Run(self)) as run:
            yield run

    def complete(
        self, result: Any = None, claim_next: bool = False, request_id: str | None = None, *, tx: Any = None
    ) -> Lease | None:
        """Hand in the result. With `claim_next` the next lease of the same queues, in the same transaction.

        `tx` is your own open transaction on the store's database, such as that of `transaction()`: both are
        committed, or neither; the lease is kept no longer, so roll it back only to let the task be taken again.
        """
        client, handle = self._client, self.belief.grant.handle
        following = self._next(request_id) if border.flag("claim_next", claim_next) else None
        if following is None and request_id is not None:
            raise border.invalid("request_id", "goes with claim_next=True; a completion alone needs none")
        sent_ms = client.clock.fast_ms()
        ask = asks.complete([(handle, client.files.filed("result", result))], following)
        answer = client.backend.call(ask) if tx is None else client.backend.call_within(tx, ask)
        client.settled(self.belief, End.COMPLETED, answer.outcomes[0])
        for error in (answer.outcomes[0], answer.grants):
            if isinstance(error, Error):
                raise error
        if following is None:
            return None
        leases = client.leases_of(answer.grants, sent_ms, following)
        return leases[0] if leases else None

    def _next(self, request_id: str | None) -> Claim:
        before = self.following
        if before is not None and before.queues and request_id is None:
            return asks.once_more(before)
        return asks.claim(
            before.queues if before is not None and before.queues else self.queue, self.holder,
            ttl=None if before is None or before.ttl_ms is None else before.ttl_ms / 1_000,
            kinds=None if before is None else before.kinds, request_id=request_id,
        )  # fmt: skip

    def fail(self, error: str, retry: bool = True, delay: Any = None, code: str | None = None) -> Ended:
        """End the attempt: ready again after `delay` or the backoff, or for good."""
        return self.ends(End.FAILED, asks.fail(self.belief.grant.handle, error, retry, delay, code))

    def release(self, delay: Any = 0) -> Ended:
        """Give the task back unfinished; costs no attempt."""
        return self.ends(End.RELEASED, asks.release(self.belief.grant.handle, delay))

    def give_back(self, why: GivenBack, delay: Any = 0) -> Ended:
        """A release that the work did not ask for."""
        return self.ends(End.RELEASED, asks.release(self.belief.grant.handle, delay, why))

    def ends(self, how: End, ask: Any, patience_ms: int | None = None) -> Ended:
        """End this lease by a request that was made before; `patience_ms` bounds the wait for a busy store."""
        ended: Ended = self.send(ask, patience_ms)
        self._client.settled(self.belief, how, ended)
        return ended

    def send(self, ask: Any, patience_ms: int | None = None) -> Any:
        """The answer to a request under this lease; what it says of the lease is taken in."""
        try:
            answer = self._client.backend.call(ask, patience_ms=patience_ms)
        except Error as refused:
            self.belief.take_in(refused)
            raise
        if self.belief.silence is not None:
            self.belief.silence.end()
        return answer

    @contextmanager
    def keep_quietly(self, *, beside: bool = False) -> Iterator[Self]:
        """The heartbeat alone, from a process too if `beside`; a loss is left for the block itself to see."""
        keeper = self._client.keeper
        keeper.add(self.belief)
        try:
            if beside:
                keeper.keep_beside(self.belief)
            yield self
        finally:
            keeper.remove(self.belief)

    @contextmanager
    def keep(self, interval: Any = None, heartbeat: str = THREAD) -> Iterator[Self]:
        """The heartbeat alone, for a block; a loss is raised at its end. `interval` is at most half the ttl.

        `heartbeat="process"` renews from a process beside this one too, one for all leases of the client, for work
        that holds the interpreter's lock. Raises `Invalid`, for a store in memory among others.
        """
        self.belief.beat_every(interval)
        with LostInBlock.told(self.belief), self.keep_quietly(beside=from_beside(heartbeat)):
            yield self

    def __enter__(self) -> Self:
        self._client.keeper.add(self.belief)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.keeper.remove(self.belief)
        if (loss := LostInBlock.loss(self.belief, raised)) is not None:
            raise loss from raised
        if self.belief.ended is not None or self.belief.is_lost:
            return
        try:
            if raised is None:
                self.release()
                warnings.warn(LEFT_OPEN.format(task_id=self.task_id), RuntimeWarning, stacklevel=2)
            elif isinstance(raised, Exception) and not is_store_away(raised):
                self.fail(**LostInBlock.failure(raised))
            else:
                self.release()
        except LeaseLost as lost:
            if lost.reason not in BY_ITS_HOLDER:  # ended through its handle, and no beat has noticed yet
                raise
