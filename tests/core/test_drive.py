"""A rule runs to its end in one step, or fails loudly."""

import asyncio

import pytest

from relet.core.drive import drive


async def answers(value):
    return value


async def awaits_another(value):
    return [await answers(value), await answers(value)]


async def refuses():
    raise ValueError("as it was raised")


def test_the_answer_of_a_rule_comes_back():
    assert drive(answers(None)) is None
    assert drive(awaits_another(7)) == [7, 7]


def test_what_a_rule_raises_comes_through():
    with pytest.raises(ValueError, match="as it was raised"):
        drive(refuses())


def test_a_rule_that_suspends_is_loud_and_is_closed():
    closed = []

    async def sleeps():
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(True)

    with pytest.raises(RuntimeError, match=r"sleeps.* suspended: a rule may await nothing but its transaction"):
        drive(sleeps())
    assert closed == [True]
