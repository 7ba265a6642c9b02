"""Rows as a store would hand them to a rule, with everything set that a test does not care about."""

import msgspec

from relet.core.model import State
from relet.core.tx import LeaseRow, TaskRow

ZEROS = {int: 0, str: "x", bool: False, State: State.READY}


def task_row(**given):
    return _row(TaskRow, given)


def lease_row(**given):
    return _row(LeaseRow, given)


def _row(kind, given):
    blank = {field.name: ZEROS.get(field.type) for field in msgspec.structs.fields(kind)}
    return kind(**blank | given)
