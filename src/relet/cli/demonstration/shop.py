"""A small shop on this machine: takes orders over HTTP, counts them, and loses its first reply."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE_S = 10.0


class Shop:
    """Each call makes an order, whatever its key: who calls twice has two."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Counter, self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.orders: list[tuple[str, dict[str, Any]]] = []
        """Key and receipt of each."""
        self.replies = 0
        """Orders that were answered."""
        self.arrived = threading.Event()
        self.reply_lost = threading.Event()

    @contextmanager
    def open(self) -> Iterator[Shop]:
        """Serve until the end of the block."""
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield self
        finally:
            self.reply_lost.set()
            self._server.shutdown()
            self._server.server_close()

    def found(self, key: str) -> dict[str, Any] | None:
        """The receipt of the order with this key."""
        return next((receipt for one, receipt in self.orders if one == key), None)


class _Counter(BaseHTTPRequestHandler):
    """Where a customer is served."""

    def __init__(self, shop: Shop, *request: Any) -> None:
        self._shop = shop
        super().__init__(*request)

    def do_POST(self) -> None:
        """Take an order. The first one is in the books when its reply is held back, until it reaches nobody."""
        shop = self._shop
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        receipt = {"order": len(shop.orders) + 1, "item": wanted["item"]}
        shop.orders.append((self.headers["Idempotency-Key"], receipt))
        if not shop.arrived.is_set():
            shop.arrived.set()
            shop.reply_lost.wait(PATIENCE_S)
            self.close_connection = True
            return
        shop.replies += 1
        self._reply(receipt)

    def do_GET(self) -> None:
        """Say whether there is an order with this key."""
        self._reply(self._shop.found(self.path.rpartition("/")[2]))

    def _reply(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: the narrator does."""
