"""Which ttl and which longest hold fit a queue, from what its leases have taken; a pure function over samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Final

import msgspec

from relet.core import limits
from relet.core.model import End
from relet.core.pasting import command, literal


class LeaseSample(msgspec.Struct, frozen=True, kw_only=True):
    """One lease of the register."""

    ttl_ms: int
    max_hold_ms: int | None
    ended: End | None
    took_ms: int | None
    """From the claim to its end, or, while it is open, to its last heartbeat."""
    took_over: bool
    capped: bool
    """Lapsed because it had reached its longest hold."""
    died: bool
    """Lapsed at once, since the death of its holder was proven: no ttl kept its task waiting."""
    let_go: bool
    """Lapsed early, since its holder let go of it by its own clock: no ttl kept its task waiting either."""
    late_beats: int
    least_left_ms: int | None
    """At the narrowest of its late renewals."""


class LateHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A holder whose write was refused because its lease had expired: it had not died, it was late."""

    ttl_ms: int
    late_ms: int


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How long leases took under which the work came to an end: completed, failed, or parked with a question."""

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
    """Completed, failed, or parked."""
    given_back: int
    """Released with their work unfinished; how long they took says nothing about the work."""
    lapsed: int
    died: int
    """Of the lapsed, those whose holder was proven dead: they waited for no ttl."""
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
        (limits.HOUR_MS, (1, 1.5, 2, 3, 4, 6, 8, 12)),
        (limits.DAY_MS, (1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 90, 180, 365)),
    )
    for step in steps
)
"""Durations that people set."""
FINISHED: Final = (End.COMPLETED, End.FAILED, End.PARKED)
BESIDE: Final = (
    "where it is the work that keeps heartbeats waiting, one from a process of its own is in time at any ttl: "
    '@app.task(..., heartbeat="process")'
)


def advise(
    queue: str, samples: Sequence[LeaseSample], late: Sequence[LateHolder], tenant: str | None = None
) -> Advice:  # fmt: skip
    """Advice on one queue; the samples are the newest first. Commands name the tenant where one is given."""
    took = [one.took_ms for one in samples if one.ended in FINISHED and one.took_ms is not None]
    ttl_ms = samples[0].ttl_ms if samples else None
    hold_ms = samples[0].max_hold_ms if samples else None
    frozen = [one for one in late if one.late_ms > limits.ADVICE_FROZEN * one.ttl_ms]
    narrow = [one.least_left_ms for one in samples if one.least_left_ms is not None]
    measured = Advice(
        queue=queue, leases=len(samples), takeovers=sum(one.took_over for one in samples), finished=len(took),
        given_back=sum(one.ended is End.RELEASED for one in samples),
        lapsed=sum(one.ended is End.LAPSED for one in samples), died=sum(one.died for one in samples),
        late_renewals=sum(one.late_beats for one in samples), least_left_ms=min(narrow, default=None),
        late_holders=len(late) - len(frozen), frozen_holders=len(frozen), took=_spread(took), ttl_ms=ttl_ms,
        max_hold_ms=hold_ms, advised_ttl_ms=None, advised_max_hold_ms=None, because=[], paste=[],
    )  # fmt: skip
    if ttl_ms is None or len(samples) < limits.ADVICE_LEASES_LEAST:
        least = limits.ADVICE_LEASES_LEAST
        few = f"{len(samples)} of its leases are known, and {least} are needed: nothing is advised"
        return msgspec.structs.replace(measured, because=[few])
    advised_ttl_ms, why_ttl = _ttl(ttl_ms, samples, [one for one in late if one not in frozen])
    advised_hold_ms, why_hold = _max_hold(measured, advised_ttl_ms, samples, tenant)
    return msgspec.structs.replace(
        measured, advised_ttl_ms=advised_ttl_ms, advised_max_hold_ms=advised_hold_ms,
        because=[*why_ttl, *why_hold, *_aside(frozen)],
        paste=_paste(queue, advised_ttl_ms if advised_ttl_ms != ttl_ms else None,
                     advised_hold_ms if advised_hold_ms != hold_ms else None, tenant),
    )  # fmt: skip


def _ttl(ttl_ms: int, samples: Sequence[LeaseSample], late: Sequence[LateHolder]) -> tuple[int, list[str]]:
    """Three times the longest delay of a heartbeat: one third to the beat, one to the delay, one to spare."""
    delays = [
        one.ttl_ms - one.least_left_ms - one.ttl_ms // 3 for one in samples if one.least_left_ms is not None
    ] + [one.ttl_ms + one.late_ms - one.ttl_ms // 3 for one in late]
    if delays:
        return _bearing(ttl_ms, max(delays), len(late))
    beating = [one.ttl_ms for one in samples if one.took_ms is not None and one.took_ms > one.ttl_ms // 2]
    if len(beating) < limits.ADVICE_LEASES_LEAST:
        few = f"{len(beating)} lease(s) lasted long enough for a heartbeat: too few to tell; the ttl stays"
        return ttl_ms, [few]
    shorter_ms = rounded_up(ttl_ms // 2)
    silent = sum(
        one.ended is End.LAPSED and not (one.capped or one.died or one.let_go) and one.ttl_ms > shorter_ms
        for one in samples
    )
    # What came in time for a long ttl may be late for a short one: of heartbeats that are further apart, no word.
    if silent and limits.ADVICE_TTL_MS_LEAST <= shorter_ms < ttl_ms and max(beating) <= 2 * shorter_ms:
        sooner = (
            f"no renewal came late, and {silent} lease(s) lapsed by silence whose holders never came back: with a "
            f"ttl of {said(shorter_ms)} their tasks are taken over sooner"
        )
        return shorter_ms, [sooner]
    return ttl_ms, ["no renewal came late: the ttl stays"]


def _bearing(ttl_ms: int, delay_ms: int, came_back: int) -> tuple[int, list[str]]:
    """The ttl that bears a delay, and never a shorter one than is set."""
    seen = f"the longest delay of a heartbeat was {said(delay_ms)}"
    if came_back:
        seen += f", and {came_back} holder(s) came back after their lease had expired"
    fits_ms = min(rounded_up(3 * delay_ms), limits.TTL_MS_MAX)
    if fits_ms < 3 * delay_ms:
        return fits_ms, [f"{seen}: not even {said(fits_ms)}, the longest ttl, bears it three times over", BESIDE]
    if fits_ms > ttl_ms:
        return fits_ms, [f"{seen}: a ttl of {said(fits_ms)} bears it three times over", BESIDE]
    return ttl_ms, [f"{seen}, which a ttl of {said(ttl_ms)} bears"]


def _max_hold(
    measured: Advice, ttl_ms: int, samples: Sequence[LeaseSample], tenant: str | None
) -> tuple[int | None, list[str]]:
    """Three times the 99th percentile, and twice the longest: who hangs, but lives, is ended some time."""
    set_ms, took = measured.max_hold_ms, measured.took
    # Those that a shorter cap cut off, which was raised since, say nothing against the one that is set.
    capped = sum(one.capped and (one.max_hold_ms or 0) >= (set_ms or 0) for one in samples)
    if took is None or measured.finished < limits.ADVICE_HOLD_LEAST:
        least = limits.ADVICE_HOLD_LEAST
        few = f"{measured.finished} finished lease(s) are known, and {least} are needed to advise a max_hold"
        return set_ms, [few]
    fits_ms = rounded_up(max(3 * took.p99_ms, 2 * took.longest_ms, 2 * ttl_ms))
    seen = f"99 of 100 leases took up to {said(took.p99_ms)}, and the longest {said(took.longest_ms)}"
    if set_ms is not None and (capped or set_ms < took.longest_ms):
        longer_ms = max(fits_ms, rounded_up(2 * set_ms))
        return longer_ms, [f"{capped} lease(s) were cut off by their max_hold of {said(set_ms)}; {seen}"]
    if set_ms is not None:
        return set_ms, [f"{seen}: the max_hold of {said(set_ms)} stays"]
    held = [one.took_ms for one in samples if one.ended is None and one.took_ms is not None and one.took_ms > fits_ms]
    if held:
        unknown = (
            f"{seen}; but {len(held)} lease(s) are held and renewed for longer now, up to {said(max(held))}. Whether "
            "they work or hang is not known here, and no max_hold is advised: look at them first → "
            + command("ls", options=("--state", "leased", "--queue", measured.queue), tenant=tenant)
        )
        return None, [unknown]
    return fits_ms, [f"{seen}: a max_hold of {said(fits_ms)} ends a handler that hangs, and none that took so long"]


def _aside(frozen: Sequence[LateHolder]) -> Iterable[str]:
    if frozen:
        yield (
            f"{len(frozen)} holder(s) were silent for more than {limits.ADVICE_FROZEN} ttls: they were stopped, not "
            "slow, and no ttl is right for that"
        )


def _paste(queue: str, ttl_ms: int | None, hold_ms: int | None, tenant: str | None) -> list[str]:
    settings = [(name, said(ms)) for name, ms in (("ttl", ttl_ms), ("max_hold", hold_ms)) if ms is not None]
    if not settings:
        return []
    arguments = ", ".join(f'{name}="{value}"' for name, value in settings)
    flags = [word for name, value in settings for word in (f"--{name.replace('_', '-')}", value)]
    return [
        f"@app.task(..., queue={literal(queue)}, {arguments})",
        f"db.queue({literal(queue)}, {arguments})",
        command("submit", queue, "INPUT", options=flags, tenant=tenant),
    ]


def _spread(took_ms: list[int]) -> Spread | None:
    if not took_ms:
        return None
    ordered = sorted(took_ms)
    p50, p90, p99 = (ordered[ceil(share * len(ordered)) - 1] for share in (0.5, 0.9, 0.99))
    return Spread(p50_ms=p50, p90_ms=p90, p99_ms=p99, longest_ms=ordered[-1])


def rounded_up(ms: float) -> int:
    """The next duration that people set, never less than what is given; of years, a whole number of days."""
    days_ms = ceil(ms / limits.DAY_MS) * limits.DAY_MS
    return int(next((step for step in STEPS_MS if step >= ms), days_ms))


def said(ms: int) -> str:
    """A duration as settings take it, to three figures where it is none of theirs."""
    for unit, size in (("d", limits.DAY_MS), ("h", limits.HOUR_MS), ("m", limits.MINUTE_MS), ("s", limits.SECOND_MS)):
        if ms >= size and ms % size == 0:
            return f"{ms // size}{unit}"
    if ms >= 100 * limits.SECOND_MS:
        return f"{round(ms / limits.SECOND_MS)}s"
    return f"{ms / limits.SECOND_MS:.3g}s"
