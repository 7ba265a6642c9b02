"""What to do next: actions, and who decides on them. A model would stand where the script stands here."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

import relet


class Reach(StrEnum):
    """How far an action reaches, and so what is to be done about one that was cut off in the middle."""

    PAGE = "page"
    """Changes the page alone. Loading it again undoes that, so it is done again."""
    READ = "read"
    """Asks the site for a page. Done again from the last page that was kept."""
    SESSION = "session"
    """Signs in. Looked for first; a session whose cookie was lost with the browser is made anew."""
    OUTWARD = "outward"
    """Changes something outside for good. On record before it is sent; looked up, and never sent blindly again."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do on a page. Holds no password: who acts knows it from the environment."""

    id: str
    kind: str
    reach: Reach
    args: dict[str, Any] = {}


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was done, by whom, where it led, and the receipt of an outward one."""

    action: Action
    token: int
    url: str
    receipt: Any = None


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent is asked for."""

    shop: str
    customer: str
    search: str
    title: str
    address: dict[str, str]
    delivery: str


class Planner(Protocol):
    """Decides on one action at a time, from what the page shows. None: the goal is reached."""

    async def next(self, url: str, text: str, done: Sequence[Done]) -> Action | None: ...


REACH = {
    "open": Reach.READ, "sign_in": Reach.SESSION, "search": Reach.READ, "follow": Reach.READ, "add": Reach.OUTWARD,
    "fill": Reach.PAGE, "choose": Reach.PAGE, "order": Reach.OUTWARD, "read": Reach.PAGE,
}  # fmt: skip


class Script:
    """A planner without a model: it looks at the page as one would, and knows this one shop."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal

    async def next(self, url: str, text: str, done: Sequence[Done]) -> Action | None:
        kinds = [one.action.kind for one in done]
        choice = self._choose(urlsplit(url).path, text, kinds)
        if choice is None:
            return None
        kind, args = choice
        return Action(id=f"{len(done) + 1:02}-{kind}", kind=kind, reach=REACH[kind], args=args)

    def _choose(self, place: str, text: str, kinds: list[str]) -> tuple[str, dict[str, Any]] | None:
        goal = self._goal
        if "open" not in kinds:
            return "open", {"url": goal.shop}
        if "Signed in as" not in text:
            return "sign_in", {"name": goal.customer}
        if "order" in kinds:
            return None if kinds[-1] == "read" else ("read", {})
        if "add" in kinds:
            return self._checkout(place, text)
        if place.startswith("/item/") and f'heading "{goal.title}"' in text:
            return "add", {"title": goal.title, "had": basket_count(text)}
        if place != "/search":
            return "search", {"words": goal.search}
        for name in (goal.title, "Next page"):
            if f'link "{name}"' in text:
                return "follow", {"link": name}
        raise relet.Permanent(f"the shop has no book {goal.title!r} among {goal.search!r}", code="NOT-FOUND")

    def _checkout(self, place: str, text: str) -> tuple[str, dict[str, Any]]:
        goal = self._goal
        if place == "/basket":
            return "follow", {"link": "Go to the order form"}
        if place != "/order":
            return "follow", {"link": f"Basket ({basket_count(text)})"}
        if 'textbox "Full name":' not in text:
            return "fill", {"fields": goal.address}
        if f'radio "{goal.delivery}" [checked]' not in text:
            return "choose", {"option": goal.delivery}
        return "order", {"title": goal.title, "to": goal.address}


def basket_count(text: str) -> int:
    """How many books the page's header says are in the basket."""
    found = re.search(r'link "Basket \((\d+)\)"', text)
    return int(found[1]) if found else 0
