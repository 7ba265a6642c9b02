"""One timer for all connections on which nothing is asked: each is let go in its own time."""

import asyncio
import gc
import socket
import struct
import weakref
from operator import itemgetter
from types import SimpleNamespace

import pytest
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from relet.server.lines import IDLE_S, line_class
from relet.server.packets import Packets
from tests.waiting import PATIENCE_S


class Loop:
    """Its time stands until a test lets it go on."""

    def __init__(self):
        self.now, self.timers = 0.0, []

    def time(self):
        return self.now

    def call_later(self, seconds, call):
        self.timers.append((self.now + seconds, call))

    def until(self, now):
        while self.timers and (first := min(self.timers, key=itemgetter(0)))[0] <= now:
            self.timers.remove(first)
            self.now = first[0]
            first[1]()
        self.now = now


class Wire:
    """What a line writes to."""

    def __init__(self):
        self.is_over = False

    def abort(self):
        self.is_over = True


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def connect(loop):
    served, connections = line_class(), set()

    def connect():
        line = served.__new__(served)
        line.loop, line.connections, line.transport = loop, connections, Wire()
        line._packets = Packets(line.transport, SimpleNamespace(call_soon=lambda _call: None))
        connections.add(line)
        line._rest()
        return line

    return connect


def test_each_line_is_let_go_when_it_has_rested_for_so_long_and_one_timer_sees_to_all(loop, connect):
    first = connect()
    loop.until(IDLE_S - 1)
    second = connect()
    assert len(loop.timers) == 1
    loop.until(IDLE_S)
    assert (first.transport.is_over, second.transport.is_over, len(loop.timers)) == (True, False, 1)
    loop.until(2 * IDLE_S - 1)
    assert (second.transport.is_over, loop.timers) == (True, [])


def test_whoever_connects_after_all_have_gone_is_let_go_too(loop, connect):
    connect()
    loop.until(2 * IDLE_S)
    later = connect()
    loop.until(3 * IDLE_S)
    assert later.transport.is_over


def test_one_that_asks_meanwhile_stays_and_rests_anew_behind_its_answer(loop, connect):
    line = connect()
    loop.until(IDLE_S / 2)
    line._wake()
    loop.until(2 * IDLE_S)
    assert not line.transport.is_over
    line._rest()
    loop.until(3 * IDLE_S - 1)
    assert not line.transport.is_over
    loop.until(3 * IDLE_S)
    assert line.transport.is_over


@pytest.fixture
def answered(loop, connect, monkeypatch):
    """A line on which something was said in this turn, and what happens to it, in order."""
    line = connect()
    happened = []
    line.transport.is_closing = lambda: False
    line.transport.write = happened.append
    line._packets.write(b"answer")
    monkeypatch.setattr(H11Protocol, "data_received", lambda _line, data: happened.append(data))
    monkeypatch.setattr(H11Protocol, "eof_received", lambda _line: happened.append("eof"))
    return line, happened


def test_an_answer_goes_out_before_more_is_read_that_may_end_the_line(answered):
    line, happened = answered
    line.data_received(b"rubbish")
    assert happened == [b"answer", b"rubbish"]


def test_an_answer_goes_out_before_the_loop_closes_a_line_of_which_the_other_side_has_closed_its_half(answered):
    line, happened = answered
    assert not line.eof_received()
    assert happened == [b"answer", "eof"]


def test_an_answer_goes_out_before_a_line_is_hung_up_that_rests_since_this_very_turn(answered):
    line, happened = answered
    line.hang_up()
    assert (happened, line.transport.is_over) == ([b"answer"], True)


@pytest.mark.parametrize("is_over", [True, False])
def test_a_line_on_which_the_next_request_is_under_way_does_not_rest(connect, monkeypatch, is_over):
    """It was there before the first was answered, and has begun by then."""
    line = connect()
    line._wake()
    line.transport.is_closing = lambda: False
    line.cycle = SimpleNamespace(response_complete=is_over)
    monkeypatch.setattr(H11Protocol, "on_response_complete", lambda _line: None)
    line.on_response_complete()
    assert (line in line.idle) == is_over


async def answer(scope, receive, send):
    """At once; a stream goes on until its client has gone, and keeps its scope for a while yet."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
    if scope["path"] == "/stream":
        while (await receive())["type"] != "http.disconnect":
            pass
        kept.append(scope)
    await send({"type": "http.response.body", "body": b"no stream"})


kept = []


def cut(writer):
    """As by a machine that forgets its connections: the other side is told by a reset."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def left_behind(says, hears, end):
    """Has a line gone once its client has said and heard this much, and has ended."""
    made, gone, served, state = [], asyncio.Event(), line_class(), ServerState()
    # The timer of all lines would name whichever is the last.
    served.is_timed = True

    class Seen(served):
        def connection_lost(self, exc):
            super().connection_lost(exc)
            gone.set()

    def make():
        made.append(line := Seen(Config(answer, log_config=None, access_log=False), state, {}))
        return line

    async with (
        asyncio.timeout(PATIENCE_S),
        await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0) as at,
    ):
        reader, writer = await asyncio.open_connection(*at.sockets[0].getsockname())
        writer.write(says)
        await reader.readuntil(hears) if hears else await asyncio.sleep(0)
        end(writer)
        await gone.wait()
        while state.tasks:
            await asyncio.wait(state.tasks)
        await asyncio.sleep(0)
        left = weakref.ref(made.pop())
        return left() is not None


@pytest.mark.parametrize("end", [lambda writer: writer.close(), cut], ids=["closed", "cut"])
@pytest.mark.parametrize(
    ("says", "hears"),
    [
        (b"", b""),
        (b"GET / HT", b""),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"no stream"),
        (b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", b"\r\n\r\n"),
    ],
    ids=["nothing", "half a request", "one request", "a stream"],
)
def test_of_a_line_that_has_ended_nothing_waits_for_a_collection_of_all_that_there_is(says, hears, end):
    """A fleet whose connections are cut all the time would fill the memory of the service until that comes."""
    gc.disable()
    try:
        assert not asyncio.run(left_behind(says, hears, end))
    finally:
        gc.enable()
        kept.clear()
