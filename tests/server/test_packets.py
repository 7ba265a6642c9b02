"""What goes over the wire together: an answer in one piece, and nothing kept back that nobody adds to."""

import asyncio

import pytest

from relet.server.packets import JOINED_BYTES_MAX, Packets


class Wire:
    """What the loop writes to."""

    def __init__(self):
        self.sent, self.closed = [], False

    def write(self, data):
        self.sent.append(data)

    def close(self):
        self.closed = True

    abort = close

    def is_closing(self):
        return self.closed


@pytest.fixture
def wire():
    return Wire()


def said(wire, talk):
    """What was sent by the end of the turn in which something was said, and then."""

    async def within():
        packets = Packets(wire, asyncio.get_running_loop())
        talk(packets)
        at_once = list(wire.sent)
        await asyncio.sleep(0)
        return at_once, wire.sent

    before, after = asyncio.run(within())
    return before, after


def test_a_head_and_its_body_are_one_packet(wire):
    def talk(packets):
        packets.write(b"head ")
        packets.write(b"")
        packets.write(b"body")

    assert said(wire, talk) == ([], [b"head body"])


def test_the_head_of_a_stream_does_not_wait_for_what_may_come_much_later(wire):
    assert said(wire, lambda packets: packets.write(b"head")) == ([], [b"head"])


def test_what_is_large_goes_out_at_once_so_that_its_writer_learns_when_it_is_not_taken(wire):
    large = bytes(JOINED_BYTES_MAX)

    def talk(packets):
        packets.write(b"head ")
        packets.write(large)
        packets.write(b"rest")

    assert said(wire, talk) == ([b"head " + large], [b"head " + large, b"rest"])


def test_what_was_said_before_a_close_is_said_and_nothing_twice(wire):
    def talk(packets):
        packets.write(b"answer")
        packets.close()

    assert said(wire, talk) == ([b"answer"], [b"answer"])
    assert wire.closed


def test_nothing_is_said_to_a_line_that_was_cut(wire):
    def talk(packets):
        packets.write(b"answer")
        packets.abort()

    assert said(wire, talk) == ([], [])


def test_what_is_asked_of_the_transport_it_answers(wire):
    packets = Packets(wire, None)
    assert not packets.is_closing()
    wire.closed = True
    assert packets.is_closing()


def test_what_was_said_can_be_sent_before_something_that_may_end_the_line(wire):
    def talk(packets):
        packets.write(b"answer")
        packets.send_now()
        packets.abort()

    assert said(wire, talk) == ([b"answer"], [b"answer"])
