"""A TCP proxy before a server, which does to connections what a network does.

    with PostgresServer(tcp=True) as server, Proxy(server) as proxy, server.database(at=proxy.url) as url: ...

It starts by passing everything on. What a method asks for holds, for every connection, when the method returns.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from functools import partial

CHUNK, TAIL = 65_536, 256
ANSWER_S = 10
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: a close that throws away what was not sent, and says so to the peer
READY = b"Z\0\0\0\5"  # PostgreSQL is done with what it was sent; the status of the transaction follows


@dataclass
class Trigger:
    """Bytes of a client that decide the fate of its connection."""

    said: bytes
    ends: bytes | None
    """What the reply ends with, which nobody gets to see; None: the bytes do not even arrive."""
    is_twice: bool = False
    """Nothing is cut: they arrive once more, over another connection."""


class Cut(ConnectionError):
    """A trigger was met."""


class Echo:
    """A connection of its own that says what a client says, up to its next reply; nobody gets what it is answered."""

    def __init__(self):
        self._said = asyncio.Queue()

    def say(self, data):
        self._said.put_nowait(data)

    def over(self):
        self._said.put_nowait(b"")

    async def carry(self, port):
        with contextlib.suppress(OSError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                while data := await self._said.get():
                    writer.write(data)
                # Who closes before the answer comes is one that has gone, for whom nothing need be done.
                await asyncio.wait_for(reader.read(CHUNK), ANSWER_S)
            finally:
                writer.close()


class Met:
    """What one connection has met."""

    trigger = None
    echo = None


class Proxy:
    """`front` is anything with a `port`: a server with `tcp=True`, a PgBouncer, another proxy."""

    def __init__(self, front):
        self._front = front
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._lines, self._echoes = set(), set()  # the task of each connection
        self._dropping = False
        self._delay_s = 0.0
        self._requests, self._replies = asyncio.Event(), asyncio.Event()  # set: they are forwarded
        self._trigger = None
        self.fired = threading.Event()
        """Set once a trigger was met, and what it is for has been done."""

    def __enter__(self):
        self._thread.start()
        self._listener = self._run(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port = self._listener.sockets[0].getsockname()[1]
        self.pass_on()
        return self

    def __exit__(self, *_):
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, database="postgres"):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @property
    def connections(self):
        """How many there are now."""
        return len(self._lines)

    def pass_on(self):
        """As at the start; what a black hole kept comes out of it."""
        self._run(self._set(requests=True, replies=True, dropping=False, delay_s=0.0, trigger=None))

    def drop_new(self):
        """New connections are reset as soon as they are there; existing ones live on."""
        self._run(self._set(dropping=True))

    def cut(self):
        """Reset every connection (RST), to both of its ends."""
        self._run(self._cut())

    def black_hole(self, *, requests=True, replies=True):
        """Nothing arrives and nothing ends, also of new connections; or only one of the two directions."""
        self._run(self._set(requests=not requests, replies=not replies))

    def delay(self, seconds):
        """Every piece, in either direction, arrives so much later."""
        self._run(self._set(delay_s=seconds))

    def cut_after(self, trigger=b"COMMIT", *, status=b"I"):
        """Once: a client's bytes with the trigger arrive, and are obeyed; instead of the reply comes a reset.

        The reply ends with this status of the transaction: b"I" outside of one, b"T" inside, b"E" in a failed one.
        """
        self.fired.clear()
        self._run(self._set(trigger=Trigger(trigger, READY + status)))

    def cut_reply(self, trigger):
        """Once: a client's bytes with the trigger arrive, and are obeyed; instead of a reply comes a reset."""
        self.fired.clear()
        self._run(self._set(trigger=Trigger(trigger, b"")))

    def cut_before(self, trigger=b"COMMIT"):
        """Once: a client's bytes with the trigger do not arrive; its connection is reset, and looks as above."""
        self.fired.clear()
        self._run(self._set(trigger=Trigger(trigger, None)))

    def say_twice(self, trigger):
        """Once: a client's bytes from the trigger on arrive a second time, as a proxy does that sends again."""
        self.fired.clear()
        self._run(self._set(trigger=Trigger(trigger, None, is_twice=True)))

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _set(self, *, requests=None, replies=None, **rest):
        for gate, is_open in ((self._requests, requests), (self._replies, replies)):
            if is_open is not None:
                gate.set() if is_open else gate.clear()
        for name, value in rest.items():
            setattr(self, f"_{name}", value)

    async def _cut(self):
        if lines := self._lines | self._echoes:
            for line in lines:
                line.cancel()
            await asyncio.wait(lines)
            await asyncio.sleep(0)  # the loop closes the sockets in its next turn

    async def _close(self):
        self._listener.close()
        await self._cut()

    async def _accept(self, reader, writer):
        line, writers = asyncio.current_task(), [writer]
        self._lines.add(line)
        try:
            await self._carry(reader, writers)
            for each in writers:
                each.close()
        except* (OSError, asyncio.CancelledError) as broken:
            for each in writers:
                reset(each)
            if broken.subgroup(Cut):
                self.fired.set()
        finally:
            self._lines.discard(line)

    async def _carry(self, from_client, writers):
        """Until both of them have ended; raises as soon as one breaks."""
        if self._dropping:
            raise ConnectionRefusedError
        await self._requests.wait()
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._front.port)
        writers.append(to_server)
        met = Met()
        async with asyncio.TaskGroup() as pumps:
            pumps.create_task(self._pump(from_client, to_server, self._requests, partial(self._ask, met)))
            pumps.create_task(self._pump(from_server, writers[0], self._replies, partial(answer, met)))

    async def _pump(self, source, sink, gate, passes):
        """Forward what `passes`, until the source ends."""
        before = b""
        while data := await source.read(CHUNK):
            await asyncio.sleep(self._delay_s)
            await gate.wait()
            if passes(before, data):
                sink.write(data)
                await sink.drain()
            before = (before + data)[-TAIL:]
        await gate.wait()
        sink.write_eof()

    def _ask(self, met, before, data):
        """May a client's bytes pass."""
        trigger = self._trigger
        # It may have come in two pieces, the last of which is this one.
        if trigger and trigger.said in (before + data)[1 - len(data) - len(trigger.said) :]:
            self._trigger = None
            if trigger.is_twice:
                met.echo = Echo()
                self._echoes.add(task := asyncio.create_task(met.echo.carry(self._front.port)))
                task.add_done_callback(self._has_ended)
            elif trigger.ends is None:
                raise Cut
            else:
                met.trigger = trigger
        if met.echo is not None:
            met.echo.say(data)
        return True

    def _has_ended(self, echo):
        self._echoes.discard(echo)
        self.fired.set()


def answer(met, before, data):
    """May a server's bytes pass."""
    if met.echo is not None:
        met.echo, _ = None, met.echo.over()
    if met.trigger is not None and (before + data).endswith(met.trigger.ends):
        raise Cut
    return met.trigger is None


def reset(writer):
    if not writer.transport.is_closing():
        with contextlib.suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
