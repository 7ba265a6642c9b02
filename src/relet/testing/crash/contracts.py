"""Effects within contract: which calls of an effect's function were allowed, judged from the calls themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from relet.client.durable.contracts import Conditional, Keyed, Natural
from relet.client.durable.sight import Saw
from relet.core.work import ContractKind, EffectState, Outcome
from relet.testing.crash.plan import Action
from relet.testing.crash.reading import Reading
from relet.testing.crash.trace import Committed, Placed, Seen, Settled, Struck

REPEATABLE: Final = frozenset({Keyed.kind, Natural.kind, Conditional.kind})


def effects_within_contract(reading: Reading) -> Iterator[str]:
    """A call has its intent on record, is repeated only as its contract allows, and with the same key and payload."""
    for effect_id in dict.fromkeys(line.sight.effect for line in reading.seen() if line.sight.effect):
        calls = _Calls(effect_id)
        for placed in reading.lines:
            yield from calls.take(placed)
        yield from calls.at_the_end(reading)


class _Calls:
    """One effect, followed through the trace."""

    def __init__(self, effect_id: str) -> None:
        self._id = effect_id
        self._intended: set[int] = set()
        self._calls: list[Seen] = []
        self._open: Seen | None = None
        """The last call of which nobody knows yet that it did not happen."""
        self._kept = False
        self._frozen: set[int] = set()
        """Processes that were stopped at whatever they did, and not at a commit: maybe in the middle of a call."""
        self._receipts: list[str] = []

    def take(self, placed: Placed) -> Iterator[str]:
        """One line of the trace."""
        line = placed.line
        if isinstance(line, Committed):
            self._note(line)
        elif isinstance(line, Settled) and line.effect == self._id and line.outcome == Outcome.NOT_APPLIED:
            self._open = None
        elif isinstance(line, Struck) and line.fault.startswith(Action.FREEZE_AT):
            self._frozen.add(line.pid)
        elif isinstance(line, Seen) and line.sight.effect == self._id:
            yield from self._see(line)

    def at_the_end(self, reading: Reading) -> Iterator[str]:
        """What the store says of it when all is over."""
        if (effect := reading.end.effects.get(self._id)) is None:
            yield f"effect {self._id} was called, and is not on record"
        elif self._kept and effect.state is not EffectState.SUCCEEDED:
            yield f"effect {effect.name!r} was acknowledged as applied, and is {effect.state}"

    def _note(self, line: Committed) -> None:
        for ack in line.acks:
            if ack.slot == self._id and ack.verb == "start_effect":
                self._intended.add(ack.n)
            if ack.slot == self._id and ack.digest == EffectState.SUCCEEDED:
                self._kept = True

    def _see(self, line: Seen) -> Iterator[str]:
        sight = line.sight
        match sight.what:
            case Saw.CALLED if line.pid in self._frozen:
                pass  # between its last look at the lease and the call, where no look can be, it was stopped
            case Saw.CALLED:
                yield from self._called(line)
                self._calls.append(line)
                self._open = line
            case Saw.ANSWERED:
                yield from self._answered(line)
            case Saw.REFUSED:
                self._open = None
            case Saw.LOOKED:
                self._looked(line)
            case Saw.RAISED | Saw.UNHEEDED:
                pass

    def _called(self, line: Seen) -> Iterator[str]:
        sight, name = line.sight, line.sight.name
        assert sight.contract is not None, "said with each call"
        if sight.attempt not in self._intended:
            yield f"effect {name!r} was called (try {sight.attempt}) before its intent was on record"
        if self._kept:
            yield f"effect {name!r} was called again (try {sight.attempt}) after its receipt was kept"
        if not self._calls:
            return
        first = self._calls[0].sight
        if sight.key != first.key:
            yield f"effect {name!r} was called under key {sight.key}, and before under {first.key}"
        if sight.payload != first.payload:
            yield f"effect {name!r} was called with another payload than before"
        if self._open is not None and not self._may_repeat(line):
            yield (
                f"effect {name!r} ({sight.contract.kind}) was called again (try {sight.attempt}) while its try "
                f"{self._open.sight.attempt} may have happened"
            )

    def _may_repeat(self, line: Seen) -> bool:
        contract = line.sight.contract
        assert contract is not None, "said with each call"
        if contract.kind is ContractKind.KEYED:
            return line.wall_ms < self._calls[0].wall_ms + (contract.retention_ms or 0)
        return contract.kind in REPEATABLE

    def _answered(self, line: Seen) -> Iterator[str]:
        sight = line.sight
        self._receipts.append(sight.receipt or "null")
        keyed = sight.contract is not None and sight.contract.kind is ContractKind.KEYED
        if keyed and len(set(self._receipts)) > 1:
            yield (
                f"effect {sight.name!r} is declared Keyed, and a repeated call got another receipt "
                f"({' and '.join(self._receipts[:2])}): the other side did not know it again. Send effect.key, or "
                "effect.headers, which are the same for each try, and no key made in the call"
            )

    def _looked(self, line: Seen) -> None:
        """It was not found; that counts once the last call can no longer arrive, by timeout and contract."""
        if line.sight.receipt is not None or self._open is None:
            return
        contract = line.sight.contract
        assert contract is not None, "said with each look"
        passed_ms = line.wall_ms - self._open.wall_ms + line.mono_ms - self._open.mono_ms
        if passed_ms >= self._open.sight.timeout_ms + contract.settles_ms:
            self._open = None
