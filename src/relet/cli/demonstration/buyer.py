"""A process that orders something from the shop: a side effect, which must happen once whoever dies meanwhile.

Run as `python -m relet.cli.demonstration.buyer URL SCHEMA QUEUE HOLDER TTL PORT`.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

from relet.cli.demonstration.stage import PATIENCE_S, act, say
from relet.client.blocking_lease import Lease
from relet.client.durable.contracts import Queryable
from relet.client.durable.effects import EffectCall


class Buyer:
    """Orders under a lease, and keeps the shop's reply as the receipt."""

    def __init__(self, port: int) -> None:
        self._port = port

    def work(self, lease: Lease) -> None:
        """Order what the task asks for, once."""
        with lease.run() as run:
            contract = Queryable(self.look)
            receipt = run.effect("order", lease.input, self.order, contract=contract, timeout=PATIENCE_S)
            lease.complete(receipt)
        say("completed", task=lease.task_id)

    def order(self, payload: Any, effect: EffectCall) -> Any:
        """The call that changes the world outside."""
        return self._asked("POST", "/orders", json.dumps(payload), effect.headers)

    def look(self, _payload: Any, effect: EffectCall) -> Any:
        """Has an order with this key arrived."""
        say("asked", key=effect.key)
        return self._asked("GET", f"/orders/{effect.key}")

    def _asked(self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None) -> Any:
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)) as connection:
            connection.request(method, path, body, headers or {})
            return json.load(connection.getresponse())


def main() -> None:
    """Entry of the process."""
    url, schema, queue, holder, ttl, port = sys.argv[1:7]
    act(url, schema, queue, holder, float(ttl), Buyer(int(port)).work)


if __name__ == "__main__":
    main()
