"""`relet exec QUEUE -- cmd`: any program under a lease, its heartbeat outside of it."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from relet.client.blocking import Client, Lease
from relet.core import border
from relet.core.border import invalid
from relet.core.errors import Invalid, LeaseLost
from relet.core.model import LostReason, State
from relet.worker.child import Child, Ending, Interrupts

OK, FAILED, NOTHING, LOST, WAITING, TIMEOUT, INTERRUPTED = 0, 1, 3, 5, 7, 124, 130
RETRY_CODE: Final = 75
PERMANENT_CODES: Final = frozenset(range(64, 79)) - {RETRY_CODE}
RESULT_BYTES_MAX: Final = 4 << 20
LOOP_WAIT_S: Final = 0.5


def run_program(
    client: Client, queue: str, command: list[str], *, loop: bool = False, holder: str | None = None,
    ttl: Any = None, wait: Any = None, timeout: Any = None, grace: Any = 5,
) -> int:  # fmt: skip
    """Claim a task, run the command under its lease, hand in what it leaves; the exit code of `relet exec`.

    With `loop` it goes on with the next one until a signal comes, or until nothing came for `wait`.
    """
    if sys.platform == "win32":
        raise invalid("exec", "needs process groups, which Windows has not; use a worker in Python there")
    if not command:
        raise invalid("command", "is missing; write it behind --, as in: relet exec reports -- python work.py")
    grace_s = border.duration_ms("grace", grace) / 1_000
    timeout_ms = border.maybe_duration_ms("timeout", timeout, least=1)
    code = NOTHING
    with Interrupts() as interrupts:
        while not interrupts.seen:
            lease = _claim(client, queue, interrupts, holder=holder, ttl=ttl, wait=wait, loop=loop)
            if lease is None:
                break
            code = _run_one(client, lease, command, interrupts, grace_s, timeout_ms)
            if not loop:
                return code
        return INTERRUPTED if interrupts.seen and code == NOTHING else code


def _claim(
    client: Client, queue: str, interrupts: Interrupts, *, holder: str | None, ttl: Any, wait: Any, loop: bool
) -> Lease | None:  # fmt: skip
    forever = loop and wait is None
    until = time.monotonic() + border.duration_ms("wait", wait or 0) / 1_000
    while not interrupts.seen:
        left_s = LOOP_WAIT_S if forever else max(0.0, min(LOOP_WAIT_S, until - time.monotonic()))
        lease = client.claim(queue, holder=holder, ttl=ttl, wait=left_s)
        if lease is not None or (not forever and time.monotonic() >= until):
            return lease
    return None


def _run_one(
    client: Client, lease: Lease, command: list[str], interrupts: Interrupts, grace_s: float, timeout_ms: int | None
) -> int:
    with tempfile.TemporaryDirectory(prefix="relet-exec-") as folder, lease.keep_quietly():
        files = _files(Path(folder), lease)
        try:
            child = Child(command, {**os.environ, **_environment(client, lease), **files}, grace_s)
        except OSError as wrong:
            lease.fail(f"{command[0]} cannot be started: {wrong.strerror}", retry=False, code="RELET-EXEC")
            sys.stderr.write(f"relet: {command[0]} cannot be started: {wrong.strerror}\n")
            return FAILED
        limits_ms = [ms for ms in (timeout_ms, lease.belief.grant.timeout_ms) if ms is not None]
        ending = child.watch(lease.belief, interrupts, min(limits_ms) / 1_000 if limits_ms else None)
        try:
            return _hand_in(client, lease, child, ending, Path(files["RELET_RESULT_FILE"]))
        except LeaseLost as lost:
            sys.stderr.write(f"relet: {lost}\n")
            return LOST


def _files(folder: Path, lease: Lease) -> dict[str, str]:
    taken, given = folder / "input.json", folder / "result.json"
    taken.write_text(json.dumps(lease.input), encoding="utf-8")
    return {"RELET_INPUT_FILE": str(taken), "RELET_RESULT_FILE": str(given)}


def _environment(client: Client, lease: Lease) -> dict[str, str]:
    return {
        "RELET_URL": client.backend.url, "RELET_TENANT": client.backend.tenant, "RELET_HANDLE": lease.handle,
        "RELET_TASK_ID": lease.task_id, "RELET_TOKEN": str(lease.token), "RELET_ATTEMPT": str(lease.attempt),
    }  # fmt: skip


def _hand_in(client: Client, lease: Lease, child: Child, ending: Ending, result: Path) -> int:
    match ending:
        case Ending.LOST:
            return _lost(client, lease)
        case Ending.TIMEOUT:
            lease.fail("its timeout is over", code="RELET-TIMEOUT")
            return TIMEOUT
        case Ending.INTERRUPTED:
            lease.release()
            return INTERRUPTED
        case Ending.EXITED:
            return _exited(lease, child.code, result)


def _lost(client: Client, lease: Lease) -> int:
    """Ended elsewhere: by the program itself through the command line, by a cancel, or really lost."""
    cause = lease.belief.cause
    reason = None if cause is None else cause.reason
    if reason is LostReason.CANCELLED:
        lease.release()
    elif reason in (LostReason.CLOSED, LostReason.RELEASED):
        codes = {State.DONE: OK, State.WAITING: WAITING, State.FAILED: FAILED}
        released = OK if reason is LostReason.RELEASED else FAILED
        return codes.get(client.task(lease.task_id).state, released)
    sys.stderr.write(f"relet: {cause}\n")
    return LOST


def _exited(lease: Lease, code: int, result: Path) -> int:
    if code == 0:
        try:
            lease.complete(_result(result))
        except Invalid as wrong:
            lease.fail(str(wrong), retry=False, code="RELET-RESULT")
            sys.stderr.write(f"relet: {wrong}\n")
            return FAILED
        return OK
    text = f"the program exited with {code}" if code > 0 else f"the program was ended by {_signal_name(-code)}"
    lease.fail(text, retry=code not in PERMANENT_CODES, code=f"EXIT-{code}" if code > 0 else _signal_name(-code))
    sys.stderr.write(f"relet: task {lease.task_id}: {text}\n")
    return FAILED


def _result(path: Path) -> Any:
    try:
        if path.stat().st_size > RESULT_BYTES_MAX:
            raise invalid("result", f"the result file has more than {RESULT_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as wrong:
        raise invalid("result", f"the result file is not UTF-8: {wrong}") from wrong
    try:
        return json.loads(text) if text.strip() else None
    except ValueError as wrong:
        raise invalid("result", f"the result file is not JSON: {wrong}") from wrong


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
