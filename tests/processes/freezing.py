"""SIGSTOP, as a suspended machine or a debugger does it."""

import os
import signal
import subprocess

from tests import write_lock
from tests.processes.looking import ask, is_in_a_file
from tests.waiting import eventually

OPEN = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend' AND xact_start IS NOT NULL"
)


def is_free(db):
    """Is nobody within a transaction that would keep others waiting."""
    return write_lock.is_free(db) if is_in_a_file(db) else ask(db, OPEN) == [(0,)]


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
    """Stop a process where it holds no lock of the store: stopped inside a transaction it would stop everybody."""

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
