"""The other side of an effect, in a process of its own: `python -m examples.outside.ledger [--lose N]`

POST / with `Idempotency-Key` is applied once for each key, and answered again as it was. Without one, but with a
`reference` in its body, it is applied as often as it arrives; GET /applied?key=… tells whether it has arrived. Every
application is counted: GET /applied. `--lose N` applies the first N and loses their replies.
"""

from __future__ import annotations

import argparse
import threading
from collections import Counter
from typing import Any

import msgspec

from examples.outside.serving import Asked, Reply, serve


class Ledger:
    """What was applied, how often, and what was said of it."""

    def __init__(self, lose: int = 0) -> None:
        self._lock = threading.Lock()
        self._lose = lose
        self._entries: dict[str, tuple[Any, dict[str, Any]]] = {}
        self.applied: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()

    def answer(self, asked: Asked) -> Reply:
        """One request."""
        with self._lock:
            match asked.method, asked.path:
                case "POST", "/":
                    return self._post(asked)
                case "GET", "/applied" if "key" in asked.query:
                    entry = self._entries.get(asked.query["key"])
                    return Reply(404, "no such entry") if entry is None else Reply(200, entry[1])
                case "GET", "/applied":
                    return Reply(200, self.applied)
                case "GET", "/entries":
                    return Reply(200, {key: content for key, (content, _) in self._entries.items()})
                case "GET", "/asked":
                    return Reply(200, self.asked)
                case _:
                    return Reply(404, "no such place")

    def _post(self, asked: Asked) -> Reply:
        content = msgspec.json.decode(asked.body)
        remembered = asked.headers.get("Idempotency-Key")
        key = remembered or content.get("reference")
        if key is None:
            return Reply(400, "neither Idempotency-Key nor reference")
        self.asked[key] += 1
        if remembered and key in self._entries:
            before, receipt = self._entries[key]
            return Reply(200, receipt) if before == content else Reply(422, "this key came with another content")
        self.applied[key] += 1
        receipt = {"number": self.applied.total(), "key": key}
        self._entries[key] = (content, receipt)
        lost, self._lose = self._lose > 0, max(0, self._lose - 1)
        return Reply(201, receipt, lost=lost)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lose", type=int, default=0, help="apply the first N and lose their replies")
    serve(Ledger(parser.parse_args().lose).answer)
