"""A small HTTP service in a process of its own: says its port, answers, and ends when nobody holds its input."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """Its answer: bytes as they are, anything else as JSON. A lost one is never sent: the connection just ends."""

    status: int = 200
    value: Any = None
    headers: Mapping[str, str] = {}
    lost: bool = False


class Service(ThreadingHTTPServer):
    """Answers by a function, on a free port of this machine."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Asked], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, *_: Any) -> None:
        """Says nothing: what was asked is counted."""

    def _answer(self, method: str) -> None:
        to = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        reply = self.server.answer(Asked(method, to.path, dict(parse_qsl(to.query)), dict(self.headers), body))
        if reply.lost:
            return
        data = reply.value if isinstance(reply.value, bytes) else msgspec.json.encode(reply.value)
        self.send_response(reply.status)
        for name, value in {**reply.headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def serve(answer: Callable[[Asked], Reply]) -> None:
    """Serve until standard input ends, so that no service outlives the program that started it."""
    with Service(answer) as service:
        sys.stdout.write(f"{service.url}\n")
        sys.stdout.flush()
        threading.Thread(target=service.serve_forever, daemon=True).start()
        while os.read(sys.stdin.fileno(), 1024):
            pass
        service.shutdown()
