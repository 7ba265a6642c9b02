"""A service outside of the store, in a process of its own. It prints its port, and counts calls and changes by key.

POST /KIND changes something under the key in `Idempotency-Key`, as the contract of that name promises. `Relet-Then`
says what becomes of the caller once that has happened and before it hears of it: `kill PID`, `freeze PID` or `drop`.
GET /KIND/KEY answers what is there, GET /counts how often was called, and what that has changed. One request is
served after the other, so whoever asks for the counts asks after all that was sent before.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer

calls, applied, kept = Counter(), Counter(), {}


def change(kind, key, body, condition):
    """The status and the answer of a call, and whether it has changed anything."""
    there = kept.get((kind, key), {"version": 0})
    if kind == "keyed" and (kind, key) in kept:
        return 200, there, False
    if kind == "conditional" and condition != there["version"]:
        return 412, there, False
    after = {"version": there["version"] + 1, "value": body["value"]}
    if kind == "natural":
        after["version"] = 1
    changed = after != there
    kept[kind, key] = after
    return 200, after, changed


def stop(pid, number, wanted):
    """Send a signal, and return when it has taken effect: until then threads of that process may go on."""
    os.kill(pid, number)
    while (
        told := subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout
    ) and (not told.strip().startswith(wanted)):
        time.sleep(0.005)


class Outside(BaseHTTPRequestHandler):
    def do_POST(self):
        kind, key = self.path.strip("/"), self.headers["Idempotency-Key"]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer, changed = change(kind, key, body, int(self.headers.get("If-Match", -1)))
        calls[f"{kind} {key}"] += 1
        applied[f"{kind} {key}"] += changed
        what, _, pid = self.headers.get("Relet-Then", "").partition(" ")
        if pid:
            stop(int(pid), *{"kill": (signal.SIGKILL, "Z"), "freeze": (signal.SIGSTOP, "T")}[what])
        if what != "drop":
            self._answer(status, answer)

    def do_GET(self):
        if self.path == "/counts":
            self._answer(200, {"calls": calls, "applied": applied})
            return
        kind, key = self.path.strip("/").split("/")
        found = kept.get((kind, key))
        self._answer(404 if found is None else 200, found)

    def _answer(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Nobody reads it."""


with HTTPServer(("127.0.0.1", 0), Outside) as server:
    sys.stdout.write(f"{server.server_port}\n")
    server.serve_forever()
