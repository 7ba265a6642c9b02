"""A service on a real socket, and durable work whose effects call it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.durable.conftest import app, db, handle, settle, style
from tests.waiting import Gate

__all__ = ["app", "db", "handle", "settle", "style"]


class Service(ThreadingHTTPServer):
    """Answers as it is told, one answer for each request and the last one for ever; remembers what it was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answering)
        self.answers, self.seen, self.gate = [(200, {"id": 7})], [], Gate()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def next_answer(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def handle_error(self, *_):
        """A caller that hung up is what some tests are about."""


class Answering(BaseHTTPRequestHandler):
    def do_POST(self):
        told = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.path, dict(self.headers), json.loads(told) if told else None))
        answer = self.server.next_answer()
        if callable(answer):
            answer(self)
            return
        status, value, *named = answer
        text = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, of in {"Content-Type": "application/json", **dict(*named)}.items():
            self.send_header(name, of)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_PUT = do_POST  # noqa: N815 - the name that http.server looks for

    def log_message(self, *_):
        """Nobody reads it."""


@pytest.fixture
def service():
    with Service() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.gate.set()
            server.shutdown()
            thread.join()
