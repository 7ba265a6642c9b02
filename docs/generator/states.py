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
    Cause.STEPPED: "its holder has made a call, and keeps the result",
    Cause.ATTACHED: "its holder attaches an artifact",
    Cause.EFFECT_STARTED: "its holder is about to try a side effect",
    Cause.CANCEL_REQUESTED: "somebody cancels it while it is held; the holder must give way",
    Cause.CANCELLED: "somebody cancels it, or its holder gives way after that",
    Cause.PARKED: "its holder ends the lease with a question: to a person, for a signal, for a time",
    Cause.ANSWERED: "the answer has come, or the time for it is over",
    Cause.REQUEUED: "an operator gives it another life",
}


class Box(NamedTuple):
    """Where a state is drawn: its middle."""

    x: int
    y: int


WIDTH, HEIGHT, BOX_W, BOX_H = 840, 470, 104, 38
START: Final = "[*]"
BOXES: Final[dict[str, Box]] = {
    START: Box(16, 210),
    "ready": Box(170, 210),
    "leased": Box(470, 210),
    "waiting": Box(320, 330),
    "done": Box(770, 210),
    "failed": Box(770, 60),
    "cancelled": Box(770, 430),
}


class Line(NamedTuple):
    """How the moves from one state to another are drawn: a curve by its control point, and where its words stand."""

    path: str
    words: Box
    anchor: str = "middle"


LINES: Final[dict[tuple[str, str], Line]] = {
    (START, "ready"): Line("M 26 210 L 116 210", Box(69, 202)),
    ("ready", "leased"): Line("M 222 203 L 416 203", Box(319, 195)),
    ("leased", "ready"): Line("M 418 219 L 224 219", Box(321, 236)),
    ("leased", "done"): Line("M 522 210 L 716 210", Box(615, 202)),
    ("leased", "failed"): Line("M 505 191 L 732 81", Box(636, 140), "start"),
    ("leased", "cancelled"): Line("M 500 229 L 742 409", Box(638, 320), "start"),
    ("leased", "waiting"): Line("M 445 229 L 354 309", Box(412, 276), "start"),
    ("waiting", "ready"): Line("M 298 311 L 202 231", Box(262, 266), "start"),
    ("waiting", "cancelled"): Line("M 372 336 C 480 345, 600 380, 714 416", Box(530, 350)),
    ("ready", "cancelled"): Line("M 175 229 C 190 400, 420 420, 714 427", Box(470, 406)),
    ("ready", "failed"): Line("M 190 191 C 220 100, 500 68, 714 66", Box(430, 110)),
    ("failed", "ready"): Line("M 718 52 C 500 10, 190 20, 165 189", Box(390, 26)),
    ("cancelled", "ready"): Line("M 718 441 C 400 490, 120 430, 155 231", Box(330, 458)),
}


def parts() -> dict[str, str]:
    """The diagram, and the table that it is made from."""
    rows = [
        [f"`{origin}`" if origin else "(new)", f"`{cause}`", f"`{target}`", WHY[cause]]
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
        f'<svg role="img" aria-label="States of a task and the moves between them" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'style="width:100%;max-width:{WIDTH}px;font:13px sans-serif" fill="none" '
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
