"""Figures as Prometheus reads them: kept by name and labels, written in its text format 0.0.4."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[str, ...]


class Kind(StrEnum):
    """What may be asked of a figure: how fast a counter grows, where a gauge stands, how a histogram is spread."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Figure(NamedTuple):
    """One figure; a series of it for each of the values that its labels take."""

    name: str
    kind: Kind
    meaning: str
    labels: Labels = ()
    bounds: tuple[float, ...] = ()
    """Of a histogram: the upper ends of its buckets; one more has no end."""


class Spread:
    """How what was observed is spread over the buckets of a histogram."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        """A bucket holds what is no larger than its end."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def join(self, other: Spread) -> None:
        """Add what another has observed."""
        self.counts = [mine + others for mine, others in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


class Board:
    """Values of figures; of one thread."""

    def __init__(self) -> None:
        # By name: a figure itself, with its bounds, takes longer to look up than a value to count.
        self._plain: dict[str, dict[Labels, float]] = {}
        self._spread: dict[str, dict[Labels, Spread]] = {}

    def add(self, figure: Figure, by: float, *labels: str) -> None:
        """Move a counter on, or a gauge."""
        series = self._plain.setdefault(figure.name, {})
        series[labels] = series.get(labels, 0) + by

    def most(self, figure: Figure, value: float, *labels: str) -> None:
        """Raise a gauge to a value, where it is not there yet."""
        series = self._plain.setdefault(figure.name, {})
        series[labels] = max(series.get(labels, value), value)

    def observe(self, figure: Figure, value: float, *labels: str) -> None:
        """One more value of a histogram."""
        series = self._spread.setdefault(figure.name, {})
        if (spread := series.get(labels)) is None:
            spread = series[labels] = Spread(figure.bounds)
        spread.observe(value)

    def join(self, other: Board) -> None:
        """Add what stands on another."""
        for name, plain in other._plain.items():
            series = self._plain.setdefault(name, {})
            for labels, value in plain.items():
                series[labels] = series.get(labels, 0) + value
        for name, spreads in other._spread.items():
            mine = self._spread.setdefault(name, {})
            for labels, spread in spreads.items():
                mine.setdefault(labels, Spread(spread.bounds)).join(spread)

    def lines(self, figure: Figure) -> Iterator[str]:
        """Its series, one sample a line."""
        for labels, value in sorted(self._plain.get(figure.name, {}).items()):
            yield _sample(figure.name, figure.labels, labels, value)
        for labels, spread in sorted(self._spread.get(figure.name, {}).items()):
            below = 0
            for end, count in zip((*figure.bounds, float("inf")), spread.counts, strict=True):
                below += count
                yield _sample(f"{figure.name}_bucket", (*figure.labels, "le"), (*labels, _number(end)), below)
            yield _sample(f"{figure.name}_sum", figure.labels, labels, spread.total)
            yield _sample(f"{figure.name}_count", figure.labels, labels, below)


def exposition(figures: Sequence[Figure], boards: Iterable[Board]) -> bytes:
    """All figures, with or without a value; what stands on several boards is added up."""
    sum_of = Board()
    for board in boards:
        sum_of.join(board)
    lines: list[str] = []
    for figure in figures:
        lines += (f"# HELP {figure.name} {figure.meaning}", f"# TYPE {figure.name} {figure.kind}")
        lines += sum_of.lines(figure)
    return "".join(f"{line}\n" for line in lines).encode()


def _sample(name: str, names: Labels, values: Labels, value: float) -> str:
    if not names:
        return f"{name} {_number(value)}"
    labels = ",".join(f'{label}="{_escaped(text)}"' for label, text in zip(names, values, strict=True))
    return f"{name}{{{labels}}} {_number(value)}"


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else repr(value).removesuffix(".0")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
