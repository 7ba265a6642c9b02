"""What is measured, how it is judged, and what came out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Judge(Enum):
    """The figure that is held against the bar."""

    RATIO = "relet / floor"
    EXTRA = "relet - floor"
    VALUE = "relet"


@dataclass(frozen=True)
class Bar:
    """One line of the table. The goal lies beyond the bar, and so tells which way is better."""

    name: str
    what: str
    unit: str
    judge: Judge
    bar: float
    goal: float
    digits: int = 0

    def meets(self, score: float, limit: float) -> bool:
        """Is the score as good as the limit, or better?"""
        return score >= limit if self.goal > self.bar else score <= limit


@dataclass(frozen=True)
class Result:
    """The two figures of a bar. `relet` is None when only the floors were asked for.

    `steady` is False when the disk changed its speed during every try of some round.
    """

    bar: Bar
    floor: float
    relet: float | None
    fsync_us: float
    steady: bool = True

    @property
    def score(self) -> float | None:
        """The figure that is held against the bar."""
        if self.relet is None:
            return None
        match self.bar.judge:
            case Judge.RATIO:
                return self.relet / self.floor
            case Judge.EXTRA:
                return self.relet - self.floor
            case Judge.VALUE:
                return self.relet

    @property
    def missed(self) -> bool:
        """Was relet measured, and worse than the bar?"""
        return self.score is not None and not self.bar.meets(self.score, self.bar.bar)

    @property
    def verdict(self) -> str:
        """One word for the table."""
        if self.score is None:
            return "floor only"
        if self.missed:
            return "below"
        return "goal" if self.bar.meets(self.score, self.bar.goal) else "ok"
