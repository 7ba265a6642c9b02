"""A crowd of connections that ask over and over: how many answers a second, and how long they take."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"


class Load(NamedTuple):
    """Answers a second of all connections together; of a hundred answers the 50th and the 99th, in milliseconds."""

    rate: float
    middle_ms: float
    tail_ms: float


class Asker(asyncio.Protocol):
    """One connection, which asks again as soon as it is answered."""

    def __init__(self, request: bytes, until: float) -> None:
        self._request, self._until = request, until
        self.took: list[float] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._said = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._asked = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._said += data
        head, end, body = self._said.partition(HEAD_END)
        if not end or len(body) < _length(head):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self.over.set_exception(RuntimeError(self._said.decode(errors="replace")))
            return
        now = time.perf_counter()
        self.took.append(now - self._asked)
        self._said = b""
        if now < self._until:
            self._ask()
        else:
            self._transport.close()
            self.over.set_result(None)


def _length(head: bytes) -> int:
    line = next(line for line in head.lower().split(b"\r\n") if line.startswith(LENGTH))
    return int(line.removeprefix(LENGTH))


async def crowd(port: int, requests: Sequence[bytes], seconds: float) -> Load:
    """What a crowd is told, each of it asking again as soon as it is answered."""
    loop, until = asyncio.get_running_loop(), time.perf_counter() + seconds
    askers = []
    for request in requests:
        _, asker = await loop.create_connection(lambda request=request: Asker(request, until), "127.0.0.1", port)
        askers.append(asker)
    await asyncio.gather(*(asker.over for asker in askers))
    took = sorted(time for asker in askers for time in asker.took)
    middle_ms, tail_ms = (took[int(len(took) * share)] * 1_000 for share in (0.5, 0.99))
    return Load(len(took) / max(seconds, sum(took) / len(askers)), middle_ms, tail_ms)


def request_of(path: str, body: object, key: str = "") -> bytes:
    """One request, as it goes over the wire."""
    said = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(said)}\r\nAuthorization: Bearer {key}\r\n\r\n".encode() + said


def main() -> None:
    """Reads the port, the seconds and the requests; a process of its own takes no turn from a server."""
    given = json.load(sys.stdin)
    requests = [request.encode() for request in given["requests"]]
    print(json.dumps(asyncio.run(crowd(given["port"], requests, given["seconds"]))))


if __name__ == "__main__":
    main()
