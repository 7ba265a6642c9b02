"""SIGSTOP, as a suspended machine or a debugger does it."""

import signal

from tests.waiting import eventually
from tests.write_lock import is_free


def freeze(program, db):
    """Stop a process where it holds no lock of the file: stopped inside a transaction it would stop everybody."""

    def stopped_outside_a_transaction():
        program.send(signal.SIGSTOP)
        if is_free(db):
            return True
        program.send(signal.SIGCONT)
        return False

    eventually(stopped_outside_a_transaction)


def thaw(program):
    program.send(signal.SIGCONT)
