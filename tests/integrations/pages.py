"""A site of a few pages that note what their scripts find, at two addresses of this machine: two origins."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIRST_SCRIPT = "<script>window.found = JSON.stringify({...sessionStorage})</script>"
PAGES = {
    "/": f"<title>Start</title>{FIRST_SCRIPT}<h1>Start</h1><label>Name <input></label>",
    "/other": f"<title>Other</title>{FIRST_SCRIPT}<h1>Other</h1>",
    "/clear": "<title>Bye</title><script>sessionStorage.clear()</script><h1>Bye</h1>",
}


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Cookie", "")))
        body = PAGES.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def site():
    """The server; `one` and `two` are its addresses, `asked` what it was asked for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        server.daemon_threads = True
        server.asked = []
        server.one = f"http://127.0.0.1:{server.server_port}"
        server.two = f"http://localhost:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
