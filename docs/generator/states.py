"""The states of a task: the table of moves as a diagram, for code browsers (Mermaid) and for the site (SVG)."""

from __future__ import annotations

import html
import re
from typing import Final, NamedTuple

from docs.generator.markdown import table
from relet.core.model import Cause, State
from relet.core.states import FINISHED, MOVES, diagram

MERMAID: Final = re.compile(r"^```mermaid\n(?P<text>stateDiagram.*?)^```$", re.DOTALL | re.MULTILINE)
EDGE: Final = re.compile(r"^ *(?P<origin>\S+) --> (?P<target>\w+): (?P<cause>\w+)$", re.MULTILINE)

WHY: Final[dict[Cause, str]] = {
    Cause.SUBMITTED: "somebody submits it",
    Cause.CLAIMED: "a holder claims it, under a new lease and a larger token",
    Cause.COMPLETED: "its holder hands in a result before the lease expires",
    Cause.RETRIED: "its holder fails the attempt, and attempts are left",
    Cause.LAPSED: "its lease expires, and losses are left",
    Cause.RELEASED: "its holder gives it back",
    Cause.FAILED: "for good: a permanent error, no attempts or losses left, or its deadline has come",
    Cause.SAVED: "its holder saves a checkpoint",
    Cause.CANCEL_REQUESTED: "somebody cancels it while it is held; the holder must give way",
    Cause.CANCELLED: "somebody cancels it, or its holder gives way after that",
    Cause.PARKED: "not in this release: waiting for a person, a signal or a time",
    Cause.ANSWERED: "not in this release: the answer has come",
    Cause.REQUEUED: "an operator gives it another life",
}


class Box(NamedTuple):
    """Where a state is drawn: its middle."""

    x: int
    y: int


WIDTH, HEIGHT, BOX_W, BOX_H = 760, 330, 104, 38
START: Final = "[*]"
BOXES: Final[dict[str, Box]] = {
    START: Box(36, 165),
    "ready": Box(190, 165),
    "leased": Box(430, 165),
    "waiting": Box(310, 290),
    "done": Box(690, 165),
    "failed": Box(690, 40),
    "cancelled": Box(690, 290),
}


class Line(NamedTuple):
    """How the moves from one state to another are drawn: a curve by its control point, and where its words stand."""

    path: str
    words: Box
    anchor: str = "middle"


LINES: Final[dict[tuple[str, str], Line]] = {
    (START, "ready"): Line("M 46 165 L 136 165", Box(90, 157)),
    ("ready", "leased"): Line("M 242 158 L 376 158", Box(309, 150)),
    ("leased", "ready"): Line("M 378 174 L 244 174", Box(309, 190)),
    ("leased", "done"): Line("M 482 165 L 636 165", Box(559, 157)),
    ("leased", "failed"): Line("M 470 146 L 644 61", Box(600, 108), "start"),
    ("leased", "cancelled"): Line("M 470 184 L 644 270", Box(580, 226), "start"),
    ("leased", "waiting"): Line("M 412 184 L 338 269", Box(384, 234), "start"),
    ("waiting", "ready"): Line("M 290 271 L 212 186", Box(238, 240), "end"),
    ("waiting", "cancelled"): Line("M 362 290 L 636 290", Box(470, 306)),
    ("ready", "cancelled"): Line("M 170 184 C 170 345, 420 335, 640 306", Box(238, 322), "middle"),
    ("ready", "failed"): Line("M 200 146 C 220 60, 430 30, 636 36", Box(330, 52)),
    ("failed", "ready"): Line("M 636 26 C 400 -2, 190 30, 180 144", Box(200, 34)),
    ("cancelled", "ready"): Line("M 742 284 C 770 240, 770 20, 735 2 C 600 -12, 130 -20, 170 144", Box(96, 60)),
}


def parts() -> dict[str, str]:
    """The diagram, and the table that it is made from."""
    rows = [
        [f"`{origin or 'new'}`" if origin else "–", f"`{cause}`", f"`{target}`", WHY[cause]]
        for (origin, cause), target in MOVES.items()
    ]
    return {
        "state diagram": f"```mermaid\n{diagram()}\n```",
        "state moves": table(["from", "by", "to", "when"], rows),
    }


def svg(mermaid: str) -> str:
    """The same diagram drawn; raises LookupError when the table has a move that has no line here."""
    words: dict[tuple[str, str], list[str]] = {}
    for edge in EDGE.finditer(mermaid):
        words.setdefault((edge["origin"], edge["target"]), []).append(edge["cause"])
    if missing := set(words) ^ set(LINES):
        raise LookupError(f"the moves and the lines of the drawing differ: {sorted(missing)}")
    drawn = [_line(LINES[pair], causes) for pair, causes in words.items()]
    drawn += [_box(name, box) for name, box in BOXES.items()]
    return (
        f'<svg role="img" aria-label="States of a task and the moves between them" viewBox="0 -24 {WIDTH + 16} '
        f'{HEIGHT + 34}" style="width:100%;max-width:{WIDTH}px;font:13px sans-serif" fill="none" '
        'stroke="currentColor" stroke-width="1.3"><defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="8" markerHeight="8" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="currentColor" '
        f'stroke="none"/></marker></defs>{"".join(drawn)}</svg>'
    )


def _line(line: Line, causes: list[str]) -> str:
    text = html.escape(", ".join(causes))
    return (
        f'<path d="{line.path}" marker-end="url(#arrow)"/><text x="{line.words.x}" y="{line.words.y}" '
        f'text-anchor="{line.anchor}" fill="currentColor" stroke="none">{text}</text>'
    )


def _box(name: str, box: Box) -> str:
    if name == START:
        return f'<circle cx="{box.x}" cy="{box.y}" r="8" fill="currentColor" stroke="none"/>'
    weight = "2.4" if State(name) in FINISHED else "1.3"
    return (
        f'<rect x="{box.x - BOX_W // 2}" y="{box.y - BOX_H // 2}" width="{BOX_W}" height="{BOX_H}" rx="8" '
        f'stroke-width="{weight}"/><text x="{box.x}" y="{box.y + 5}" text-anchor="middle" fill="currentColor" '
        f'stroke="none" font-weight="bold">{name}</text>'
    )
