"""What is asked of the current work before anything is written under its token."""

from contextvars import copy_context

import pytest

from relet.core.errors import LeaseLost
from relet.core.holding import CHECK, check_held


def lost(token):
    raise LeaseLost("frozen for too long", reason="expired", token=token)


def test_without_current_work_nothing_is_asked():
    assert CHECK.get() is None
    check_held(7)


def test_the_current_work_is_asked_about_the_token_and_its_refusal_passes():
    def work():
        CHECK.set(lost)
        check_held(7)

    with pytest.raises(LeaseLost) as refused:
        copy_context().run(work)
    assert refused.value.token == 7
    check_held(7)  # the work of another context is nobody's here
