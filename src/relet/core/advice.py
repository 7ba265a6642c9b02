"""Which ttl and which longest hold fit a queue, from what its leases have taken; a pure function over samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from shlex import quote
from typing import Final

import msgspec

from relet.core import limits
from relet.core.model import End


class LeaseSample(msgspec.Struct, frozen=True, kw_only=True):
    """One lease of the register."""

    ttl_ms: int
    max_hold_ms: int | None
    ended: End | None
    took_ms: int | None
    """From the claim to its end."""
    took_over: bool
    capped: bool
    """Lapsed because it had reached its longest hold."""
    late_beats: int
    least_left_ms: int | None
    """At the narrowest of its late renewals."""


class LateHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A holder whose write was refused because its lease had expired: it had not died, it was late."""

    ttl_ms: int
    late_ms: int


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How long leases took that their holders ended."""

    p50_ms: int
    p90_ms: int
    p99_ms: int
    longest_ms: int


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a queue, and the settings that follow from it."""

    queue: str
    leases: int
    """How many of the newest leases were of this queue; all figures are of these."""
    finished: int
    lapsed: int
    takeovers: int
    late_renewals: int
    least_left_ms: int | None
    """At the narrowest renewal; null when none was late."""
    late_holders: int
    frozen_holders: int
    took: Spread | None
    ttl_ms: int | None
    """Of the newest lease."""
    max_hold_ms: int | None
    advised_ttl_ms: int | None
    """Null where too little is known."""
    advised_max_hold_ms: int | None
    because: list[str]
    paste: list[str]
    """Lines that set it; none when all may stay as it is."""


STEPS_MS: Final = tuple(
    step * unit
    for unit, steps in (
        (limits.SECOND_MS, (1, 2, 3, 5, 10, 15, 20, 30, 45)),
        (limits.MINUTE_MS, (1, 1.5, 2, 3, 5, 10, 15, 20, 30, 45)),
        (limits.HOUR_MS, (1, 1.5, 2, 3, 4, 6, 8, 12, 24)),
    )
    for step in steps
)
"""Durations that people set."""


def advise(queue: str, samples: Sequence[LeaseSample], late: Sequence[LateHolder]) -> Advice:
    """Advice on one queue; the samples are the newest first."""
    took = _spread([one.took_ms for one in samples if one.took_ms is not None and one.ended is not End.LAPSED])
    ttl_ms = samples[0].ttl_ms if samples else None
    hold_ms = samples[0].max_hold_ms if samples else None
    frozen = [one for one in late if one.late_ms > limits.ADVICE_FROZEN * one.ttl_ms]
    narrow = [one.least_left_ms for one in samples if one.least_left_ms is not None]
    measured = Advice(
        queue=queue, leases=len(samples), takeovers=sum(one.took_over for one in samples),
        finished=sum(one.ended not in (None, End.LAPSED) for one in samples),
        lapsed=sum(one.ended is End.LAPSED for one in samples),
        late_renewals=sum(one.late_beats for one in samples), least_left_ms=min(narrow, default=None),
        late_holders=len(late) - len(frozen), frozen_holders=len(frozen), took=took, ttl_ms=ttl_ms,
        max_hold_ms=hold_ms, advised_ttl_ms=None, advised_max_hold_ms=None, because=[], paste=[],
    )  # fmt: skip
    if ttl_ms is None or len(samples) < limits.ADVICE_LEASES_LEAST:
        least = limits.ADVICE_LEASES_LEAST
        few = f"{len(samples)} of its leases are known, and {least} are needed: nothing is advised"
        return msgspec.structs.replace(measured, because=[few])
    advised_ttl_ms, why_ttl = _ttl(ttl_ms, samples, [one for one in late if one not in frozen])
    advised_hold_ms, why_hold = _max_hold(measured, advised_ttl_ms, samples)
    return msgspec.structs.replace(
        measured, advised_ttl_ms=advised_ttl_ms, advised_max_hold_ms=advised_hold_ms,
        because=[*why_ttl, *why_hold, *_aside(frozen)],
        paste=_paste(queue, advised_ttl_ms if advised_ttl_ms != ttl_ms else None,
                     advised_hold_ms if advised_hold_ms != hold_ms else None),
    )  # fmt: skip


def _ttl(ttl_ms: int, samples: Sequence[LeaseSample], late: Sequence[LateHolder]) -> tuple[int, list[str]]:
    """Three times the longest delay of a heartbeat: one third to the beat, one to the delay, one to spare."""
    delays = [
        one.ttl_ms - one.least_left_ms - one.ttl_ms // 3 for one in samples if one.least_left_ms is not None
    ] + [one.ttl_ms + one.late_ms - one.ttl_ms // 3 for one in late]
    if delays:
        seen = f"the longest delay of a heartbeat was {said(max(delays))}"
        if late:
            seen += f", and {len(late)} holder(s) came back after their lease had expired"
        if (fits_ms := rounded_up(3 * max(delays))) > ttl_ms:
            return fits_ms, [f"{seen}: a ttl of {said(fits_ms)} bears it three times over"]
        return ttl_ms, [f"{seen}, which a ttl of {said(ttl_ms)} bears"]
    beating = sum(one.took_ms is not None and one.took_ms > one.ttl_ms // 2 for one in samples)
    if beating < limits.ADVICE_LEASES_LEAST:
        few = f"{beating} lease(s) lasted long enough for a heartbeat: too few to tell; the ttl stays"
        return ttl_ms, [few]
    died = sum(one.ended is End.LAPSED and not one.capped for one in samples)
    shorter_ms = rounded_up(ttl_ms // 2)
    if died and limits.ADVICE_TTL_MS_LEAST <= shorter_ms < ttl_ms:
        sooner = (
            f"no renewal came late, and {died} lease(s) lapsed whose holders never came back: with a ttl of "
            f"{said(shorter_ms)} their tasks are taken over sooner"
        )
        return shorter_ms, [sooner]
    return ttl_ms, ["no renewal came late: the ttl stays"]


def _max_hold(measured: Advice, ttl_ms: int, samples: Sequence[LeaseSample]) -> tuple[int | None, list[str]]:
    """Three times the 99th percentile: who hangs, but lives, is ended some time."""
    capped = sum(one.capped for one in samples)
    if measured.took is None or measured.finished < limits.ADVICE_HOLD_LEAST:
        least = limits.ADVICE_HOLD_LEAST
        few = f"{measured.finished} finished lease(s) are known, and {least} are needed to advise a max_hold"
        return measured.max_hold_ms, [few]
    fits_ms = rounded_up(max(3 * measured.took.p99_ms, 2 * ttl_ms))
    p99 = f"99 of 100 leases took up to {said(measured.took.p99_ms)}"
    if measured.max_hold_ms is None:
        return fits_ms, [f"{p99}: a max_hold of {said(fits_ms)} ends a handler that hangs, and no other"]
    if capped or measured.max_hold_ms < measured.took.p99_ms:
        longer_ms = max(fits_ms, rounded_up(2 * measured.max_hold_ms))
        return longer_ms, [f"{capped} lease(s) were cut off by their max_hold of {said(measured.max_hold_ms)}; {p99}"]
    return measured.max_hold_ms, [f"{p99}: the max_hold of {said(measured.max_hold_ms)} stays"]


def _aside(frozen: Sequence[LateHolder]) -> Iterable[str]:
    if frozen:
        yield (
            f"{len(frozen)} holder(s) were silent for more than {limits.ADVICE_FROZEN} ttls: they were stopped, not "
            "slow, and no ttl is right for that"
        )


def _paste(queue: str, ttl_ms: int | None, hold_ms: int | None) -> list[str]:
    settings = [(name, said(ms)) for name, ms in (("ttl", ttl_ms), ("max_hold", hold_ms)) if ms is not None]
    if not settings:
        return []
    arguments = ", ".join(f'{name}="{value}"' for name, value in settings)
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in settings)
    return [
        f'@app.task(..., queue="{queue}", {arguments})',
        f'db.queue("{queue}", {arguments})',
        f"relet submit {quote(queue)} INPUT {flags}",
    ]


def _spread(took_ms: list[int]) -> Spread | None:
    if not took_ms:
        return None
    ordered = sorted(took_ms)
    p50, p90, p99 = (ordered[ceil(share * len(ordered)) - 1] for share in (0.5, 0.9, 0.99))
    return Spread(p50_ms=p50, p90_ms=p90, p99_ms=p99, longest_ms=ordered[-1])


def rounded_up(ms: float) -> int:
    """The next duration that people set; the longest one for all beyond."""
    return int(next((step for step in STEPS_MS if step >= ms), STEPS_MS[-1]))


def said(ms: int) -> str:
    """A duration as settings take it."""
    for unit, size in (("h", limits.HOUR_MS), ("m", limits.MINUTE_MS), ("s", limits.SECOND_MS)):
        if ms >= size and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms / limits.SECOND_MS:.3g}s"
