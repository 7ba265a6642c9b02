"""Noticing that somebody has committed: the service tells it over one stream that stays open, and is asked again."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Final

import httpx2

from relet.client.http.line import CONNECT_S, Line
from relet.core.whoami import PREFIX
from relet.noticing import Teller

LISTEN_AGAIN_S: Final = 0.5
SILENCE_S: Final = 40.0
"""The service says something every 15 s; who hears nothing for so long listens anew."""
CLOSE_S: Final = 2.0
PATH: Final = f"{PREFIX}/news"


class News(Teller):
    """One stream for all waiters of a process, from the first of them on."""

    def __init__(self, line: Line) -> None:
        self._line = line
        super().__init__()

    def _begin(self) -> None:
        super()._begin()
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None

    def hear(self) -> None:
        """Begin to listen."""
        with self._starting:
            if self._thread is None and not self._over.is_set():
                self._thread = threading.Thread(target=self._listen, name="relet-news", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Nobody listens any more."""
        self._over.set()
        self.note()
        thread = self._thread
        if (listening := self._socket) is not None:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)  # which ends the read that the thread is in
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSE_S)

    def _listen(self) -> None:
        over = self._over
        while not over.is_set():
            with suppress(httpx2.HTTPError, httpx2.StreamError, RuntimeError):
                self._hear(over)
            self.is_told = False
            if not over.is_set():
                self.note()  # whatever came meanwhile was not heard
            over.wait(LISTEN_AGAIN_S)

    def _hear(self, over: threading.Event) -> None:
        timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
        with self._line.client.stream("GET", PATH, timeout=timeout) as stream:
            if not stream.is_success:
                return
            self._socket = stream.extensions["network_stream"].get_extra_info("socket")
            try:
                self.is_told = True
                for line in stream.iter_lines():
                    if over.is_set():
                        return
                    if line.startswith("data:"):
                        self.note()
            finally:
                self._socket = None
