"""`relet exec QUEUE -- cmd`: any program under a lease, its heartbeat outside of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from relet.client import asks
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.client.lease import STORE_AWAY
from relet.client.telling import ABOUT
from relet.core import border
from relet.core.bond import Bond, bound
from relet.core.border import invalid, shown
from relet.core.errors import Conflict, Error, Invalid, LeaseLost
from relet.core.model import Cause, GivenBack, LostReason, State
from relet.core.trust import Status
from relet.worker.child import ENDED_ELSEWHERE, Child, Ending, Interrupts
from relet.worker.warden import Warden

OK, FAILED, NOTHING, LOST, WAITING, TIMEOUT, INTERRUPTED = 0, 1, 3, 5, 7, 124, 130
RETRY_CODE: Final = 75
PERMANENT_CODES: Final = frozenset(range(64, 79)) - {RETRY_CODE}
RESULT_BYTES_MAX: Final = 4 << 20
LOOP_WAIT_S: Final = 0.5
ASK_AGAIN_S: Final = 0.5


def run_program(
    client: Client, queue: str, command: list[str], *, loop: bool = False, holder: str | None = None,
    ttl: Any = None, wait: Any = None, timeout: Any = None, grace: Any = 5,
    explain: Callable[[Client], str] = lambda _: "",
) -> int:  # fmt: skip
    """Claim a task, run the command under its lease, hand in what it leaves; the exit code of `relet exec`.

    With `loop` it goes on with the next one until a signal comes, or until nothing came for `wait`. Raises
    `Invalid` when the command cannot be started; that costs no task an attempt. `explain` says more where there was
    nothing to claim.
    """
    if sys.platform == "win32":
        raise invalid("exec", "needs process groups, which Windows has not; use a worker in Python there")
    if not command:
        raise invalid("command", "is missing; write it behind --, as in: relet exec reports -- python work.py")
    if shutil.which(command[0]) is None:
        raise _no_start(command, "there is no such program, or it may not be executed")
    grace_s = border.duration_ms("grace", grace) / 1_000
    timeout_ms = border.maybe_duration_ms("timeout", timeout, least=1)
    code = NOTHING
    bond = client.backend.bind()
    with Interrupts() as interrupts, contextlib.closing(Warden()) as warden:
        while not interrupts.seen:
            lease = _claim(client, queue, interrupts, bond, holder=holder, ttl=ttl, wait=wait, loop=loop)
            if lease is None:
                if code == NOTHING and not interrupts.seen:
                    sys.stderr.write(f"relet: nothing to claim in {queue!r} on {client.place}{explain(client)}\n")
                break
            code = _run_one(client, lease, command, interrupts, grace_s, timeout_ms, bond, warden)
            if not loop:
                return code
        return INTERRUPTED if interrupts.seen and code == NOTHING else code


def _claim(
    client: Client, queue: str, interrupts: Interrupts, bond: Bond | None, *, holder: str | None, ttl: Any,
    wait: Any, loop: bool,
) -> Lease | None:  # fmt: skip
    forever = loop and wait is None
    until = time.monotonic() + border.duration_ms("wait", wait or 0) / 1_000
    while not interrupts.seen:
        left_s = LOOP_WAIT_S if forever else max(0.0, min(LOOP_WAIT_S, until - time.monotonic()))
        ask = asks.claim(queue, client.holder_of(holder), ttl=ttl)
        if bond is not None:
            ask = msgspec.structs.replace(ask, call_id=bound(bond.lock, ask.call_id or ""))
        try:
            leases = client.claim_waiting(ask, left_s)
        except STORE_AWAY as away:
            if not loop:
                raise
            sys.stderr.write(f"relet: {away}\n")
            time.sleep(ASK_AGAIN_S)
            continue
        if leases:
            return leases[0]
        if not forever and time.monotonic() >= until:
            return None
    return None


def _run_one(
    client: Client,
    lease: Lease,
    command: list[str],
    interrupts: Interrupts,
    grace_s: float,
    timeout_ms: int | None,
    bond: Bond | None,
    warden: Warden,
) -> int:
    with lease.keep_quietly(), _folder(lease) as folder:
        try:
            files = _files(Path(folder), lease)
            child = Child(command, {**os.environ, **_environment(client, lease), **files}, grace_s, bond, warden)
        except OSError as wrong:
            lease.release()
            raise _no_start(command, wrong.strerror or str(wrong)) from wrong
        grant = lease.belief.grant
        limits_ms = [ms for ms in (timeout_ms, grant.timeout_ms, grant.deadline_left_ms) if ms is not None]
        ending = child.watch(lease.belief, interrupts, min(limits_ms) / 1_000 if limits_ms else None)
        try:
            return _hand_in(lease, child, ending, Path(files["RELET_RESULT_FILE"]))
        except (LeaseLost, Conflict) as refused:
            return _not_ours(client, lease, refused)


def _folder(lease: Lease) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="relet-exec-")
    except OSError:
        lease.release()
        raise


def _no_start(command: list[str], why: str) -> Invalid:
    return Invalid(f"command: {shown(command[0])} cannot be started: {why}", field="command", code="RELET-EXEC")


def _files(folder: Path, lease: Lease) -> dict[str, str]:
    taken, given = folder / "input.json", folder / "result.json"
    taken.write_text(json.dumps(lease.input), encoding="utf-8")
    return {"RELET_INPUT_FILE": str(taken), "RELET_RESULT_FILE": str(given)}


def _environment(client: Client, lease: Lease) -> dict[str, str]:
    return {
        "RELET_URL": client.backend.url, "RELET_TENANT": client.backend.tenant, "RELET_HANDLE": lease.handle,
        "RELET_TASK_ID": lease.task_id, "RELET_TOKEN": str(lease.token), "RELET_ATTEMPT": str(lease.attempt),
    }  # fmt: skip


def _hand_in(lease: Lease, child: Child, ending: Ending, result: Path) -> int:
    """Tell the store how it ended; the exit code. Raises `LeaseLost` or `Conflict` when the lease is over."""
    match ending:
        case Ending.LOST:
            assert lease.belief.cause is not None, "lost for a reason"
            raise lease.belief.cause
        case Ending.TIMEOUT:
            _tell(lease, lambda: lease.fail("its time is over: its timeout or its deadline", code="RELET-TIMEOUT"))
            return TIMEOUT
        case Ending.INTERRUPTED:
            _tell(lease, lambda: lease.give_back(GivenBack.WORKER_STOPPED))
            return INTERRUPTED
        case Ending.EXITED:
            return _exited(lease, child.code, result)


def _tell(lease: Lease, verb: Callable[[], Any]) -> None:
    """Send a verb; while nobody answers and the lease is held, once more, so that what was done is not lost."""
    while True:
        try:
            verb()
        except STORE_AWAY as away:
            if lease.status is Status.LOST:
                raise
            _say(lease, str(away), away.code)
            lease.lost.wait(ASK_AGAIN_S)
        else:
            return


def _not_ours(client: Client, lease: Lease, refused: Error) -> int:
    """Ended elsewhere: by the program itself through its handle, by a cancel, or really lost."""
    reason = LostReason.CLOSED if isinstance(refused, Conflict) else LostReason(refused.detail["reason"])
    if reason in ENDED_ELSEWHERE:
        if _has_parked(client, lease):
            return WAITING
        codes = {State.DONE: OK, State.FAILED: FAILED}
        return codes.get(client.task(lease.task_id).state, OK if reason is LostReason.RELEASED else FAILED)
    if reason is LostReason.CANCELLED:
        with contextlib.suppress(Error):  # then it is cancelled when the lease lapses
            lease.release()
    _say(lease, str(refused), str(reason))
    return LOST


def _has_parked(client: Client, lease: Lease) -> bool:
    """Was it this lease that ended with a question; the task may have been answered, and gone on, since."""
    return any(event.kind is Cause.PARKED and event.token == lease.token for event in client.history(lease.task_id))


def _exited(lease: Lease, code: int, result: Path) -> int:
    if code == 0:
        try:
            value = _result(result)
            _tell(lease, lambda: lease.complete(value))
        except Invalid as wrong:
            text = str(wrong)
            _tell(lease, lambda: lease.fail(text, retry=False, code="RELET-RESULT"))
            _say(lease, text, "RELET-RESULT")
            return FAILED
        return OK
    text = f"the program exited with {code}" if code > 0 else f"the program was ended by {_signal_name(-code)}"
    name = f"EXIT-{code}" if code > 0 else _signal_name(-code)
    _tell(lease, lambda: lease.fail(text, retry=code not in PERMANENT_CODES, code=name))
    _say(lease, text, name)
    return FAILED


def _say(lease: Lease, text: str, reason: str) -> None:
    """A line on stderr, with the facts that log lines have."""
    facts = (lease.task_id, lease.token, lease.attempt, lease.holder, reason)
    sys.stderr.write(f"relet: {text}{ABOUT % facts}\n")


def _result(path: Path) -> Any:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise invalid(
                "result",
                "the result file cannot be read: it is no regular file; write JSON into the one that was named",
            )
        if found.st_size > RESULT_BYTES_MAX:
            raise invalid("result", f"the result file has more than {RESULT_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as wrong:
        raise invalid("result", f"the result file is not UTF-8: {wrong}") from wrong
    except OSError as wrong:
        raise invalid("result", f"the result file cannot be read: {wrong.strerror}") from wrong
    try:
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError) as wrong:
        raise invalid("result", f"the result file is not JSON: {wrong}") from wrong


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
