"""The corpus: a few pages behind HTTP, served by `python -m examples.research_pipeline.corpus`, and its client."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from examples.outside.asking import ask
from examples.outside.serving import Asked, Reply, serve

PAGES = {
    "silo": (
        "A silo keeps grain dry and dark. Grain that is stored above fourteen percent moisture heats up by itself. "
        "The walls are of steel or of concrete. A fan at the foot blows cool air through the grain at night."
    ),
    "mill": (
        "The mill on the river was built in 1820. Its two stones grind four tons of grain in a day. "
        "Flour is sifted three times. Warm grain clogs the stones, so that the miller sends it back."
    ),
    "ferry": "The ferry crosses the river every hour. It carries no carts on Sundays.",
    "weevil": (
        "The weevil lays its eggs inside of the kernel. Below twelve degrees it does not breed. "
        "One pair in warm grain has six thousand descendants in a season."
    ),
}


class Corpus:
    """The corpus at an address."""

    def __init__(self, url: str) -> None:
        self._url = url

    def search(self, topic: str) -> list[str]:
        """Names of the pages that speak of the topic."""
        return msgspec.json.decode(ask(f"{self._url}/search?topic={quote(topic)}"), type=list[str])

    def page(self, name: str) -> bytes:
        """The text of a page."""
        return ask(f"{self._url}/page/{quote(name)}")


def answer(asked: Asked) -> Reply:
    """One request to the corpus."""
    if asked.path == "/search":
        topic = asked.query.get("topic", "")
        return Reply(200, sorted(name for name, text in PAGES.items() if topic and topic in text))
    text = PAGES.get(asked.path.removeprefix("/page/"))
    return Reply(404, "no such page") if text is None else Reply(200, text.encode())


if __name__ == "__main__":
    serve(answer)
