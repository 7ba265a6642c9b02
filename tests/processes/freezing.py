"""SIGSTOP, as a suspended machine or a debugger does it."""

import os
import signal
import subprocess

from tests.waiting import eventually
from tests.write_lock import is_free


def stands_still(program):
    """Is it stopped; a signal takes effect some time after it was sent."""
    return is_stopped(program.pid)


def is_stopped(pid):
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return told.stdout.strip().startswith("T")


def freeze_pid(pid, db):
    """Stop a process that belongs to another one, as `freeze` does a program."""

    def stopped_outside_a_transaction():
        os.kill(pid, signal.SIGSTOP)
        eventually(lambda: is_stopped(pid))
        if is_free(db) and is_free(db):
            return True
        os.kill(pid, signal.SIGCONT)
        return False

    eventually(stopped_outside_a_transaction)


def freeze(program, db):
    """Stop a process where it holds no lock of the file: stopped inside a transaction it would stop everybody."""

    def stopped_outside_a_transaction():
        program.send(signal.SIGSTOP)
        eventually(lambda: program.process.poll() is not None or stands_still(program))
        if program.process.returncode is not None:
            return True  # it ended before the signal came
        # Twice: of several threads the last one may take the lock while the first has stopped already.
        if is_free(db) and stands_still(program) and is_free(db):
            return True
        program.send(signal.SIGCONT)
        return False

    eventually(stopped_outside_a_transaction)


def thaw(program):
    program.send(signal.SIGCONT)
