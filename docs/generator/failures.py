"""What can be refused: the classes by family, the codes that the source gives, the exit codes of commands."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import relet
from docs.generator.markdown import code, table
from relet.cli.exits import MEANINGS
from relet.cli.faults import exit_of
from relet.core import errors

SOURCE: Final = Path(relet.__file__).parent
CODE: Final = re.compile(r"RELET-[A-Z]+(?:-[A-Z]+)*")

DO: Final[dict[type[BaseException], str]] = {
    errors.Refused: "Do not repeat it as it is.",
    errors.Invalid: "Mend the argument. The message names the field, the limit and the way out.",
    errors.NotFound: "Look at the id, and at which store you are in.",
    errors.Forbidden: "Ask whoever looks after the service for a key that may, or after the database for a role.",
    errors.Conflict: "Look at the task: what you wanted has happened already, or must not happen.",
    errors.UpgradeRequired: "Install the version that the message names.",
    errors.LeaseLost: "Stop this work and discard it. Claim again if you want to go on.",
    errors.StaleToken: "Stop this work and discard it: a later holder has raised the fence.",
    errors.Unavailable: "Try again; waiting longer each time is kind to the others.",
    errors.OutcomeUnknown: "Look, or repeat it with the same request id.",
    errors.TaskFailed: "Read `.detail`; an operator may requeue the task.",
    errors.TaskCancelled: "Somebody wanted it stopped: `.detail` has the reason.",
    errors.Permanent: "Yours to raise in a handler.",
    errors.Temporary: "Yours to raise in a handler.",
    errors.NotApplied: "Yours to raise in the function of an effect, when the other side certainly did not do it.",
    errors.Parked: "Let it pass: your handler is run again once its question is answered.",
    errors.LeaseStopped: "Let it pass: your handler has been told to stop.",
}

CODES: Final[dict[str, str]] = {
    "RELET-ALREADY-DECIDED": "`Conflict`. Somebody has answered this question; that one stands. Look: `relet waits`.",
    "RELET-ARTIFACT-DAMAGED": "The bytes are not those that were stored. Discard what you read; store them again.",
    "RELET-ARTIFACT-MISSING": "`NotFound`. Nothing is stored under this URI here: deleted, or in another place.",
    "RELET-ARTIFACT-PLACE": "`Unavailable`. The folder or bucket cannot be used; the message says why.",
    "RELET-BUSY": "`Unavailable`. Another program kept the write lock for too long. Try again; if it lasts, find it.",
    "RELET-CANCELLED": "`Unavailable`. A server cut a statement short: its `statement_timeout`, or somebody.",
    "RELET-CANNOT-OPEN": "`Unavailable`. The file, or one beside it, is gone or may not be written by you.",
    "RELET-CLOCK": "`Unavailable`. A server's clock was stepped again and again while this was asked. Mend it.",
    "RELET-CLOSED": "`Unavailable`. This client was closed. Connect again.",
    "RELET-COMMIT": "`OutcomeUnknown`. The commit was answered with an error. Look before you repeat.",
    "RELET-COPIED": "`Conflict`. The store of this file was moved to a database and goes on there: use that address.",
    "RELET-COPYING": "`Unavailable`. A copy of a store is not complete there. Wait, or run `relet copy` again.",
    "RELET-DAMAGED": "`Unavailable`, for good. The file, the database or a row is damaged. Restore a backup.",
    "RELET-DEADLINE": "On a task: its deadline came before it was finished.",
    "RELET-EFFECT-BUSY": "`Conflict`. A try of this effect is under way under a live lease. Ask again when it ends.",
    "RELET-EFFECT-CONFLICT": "`Conflict`. This effect is on record with another payload. Use another name or key.",
    "RELET-EFFECT-EARLY": "`Conflict`. Not found, but the last try may still arrive. Look again later.",
    "RELET-EFFECT-OPEN": "`Conflict`. A task cannot be completed while an effect of it is not settled.",
    "RELET-EFFECT-SETTLED": "`Conflict`. It is known what became of this effect, and it is something else.",
    "RELET-EFFECT-UNKNOWN": "`OutcomeUnknown`. A repeated try was not applied, but an earlier one may have been.",
    "RELET-ENCODING": "`Invalid`. The database cannot keep every text. Make one in UTF8.",
    "RELET-ENGINE": "`Unavailable`. This SQLite can corrupt a database that several connections write. Upgrade apsw.",
    "RELET-EXEC": "`relet exec` could not start the program; no task has lost an attempt by it.",
    "RELET-EXISTS": "`Conflict`. The file that was named for a backup is there already. Name a new one.",
    "RELET-FAULT": "`OutcomeUnknown`, with status 500. A bug of the service, which its log tells of. Report it.",
    "RELET-FENCE-BUSY": "`Unavailable`. Somebody holds the fence, or moves it each time. Try again.",
    "RELET-FENCE-HALF": "`OutcomeUnknown`. A command in Redis failed after others: `.detail` says how many stay.",
    "RELET-FENCE-IDLE": "`Unavailable`. A block in PostgreSQL paused for too long, and was undone. Keep it short.",
    "RELET-FENCE-TARGET": "`Unavailable`. The target of a fence failed; `.detail` has its words. Try again.",
    "RELET-FORKED": "`Unavailable`. Forked amid another thread's transaction, or after a bucket was used. Spawn it.",
    "RELET-FULL": "`Unavailable`. The disk is full; nothing was written. Free some space.",
    "RELET-GONE": "`Conflict`, `NotFound`. The task had finished and was pruned; an id gets no second life.",
    "RELET-HANDLE": "`NotFound`. This store granted no such lease: another store's handle, or a damaged one.",
    "RELET-HANDLE-IN-ARGV": "`Invalid`. A handle was among the arguments, where others can read it. It was not used.",
    "RELET-HELD": "`relet claim --task`: somebody else holds the task.",
    "RELET-IN-USE": "`Conflict`. An operator's command found the file open in another process. End that one first.",
    "RELET-INPUT": "On a task: its input does not fit the handler's parameters. Not tried again.",
    "RELET-IO": "`Unavailable`. The disk or the engine failed; `.detail` has its words. Nothing was written.",
    "RELET-LAPSED": "On a task: its last lease expired without an end.",
    "RELET-LOGIN": "`Forbidden`. The server does not let this user in. Look at user, password and pg_hba.conf.",
    "RELET-MEDIA-TYPE": "`Invalid`, with status 415. The body of a request is not JSON. Send JSON.",
    "RELET-MISFIT": "`Invalid`. What was kept does not fit the type asked for. Mend the type or the receipt.",
    "RELET-MOVED": "`Unavailable`. The file comes from another machine. If no other copy is in use: `relet adopt`.",
    "RELET-NETWORK-FILE": "`Unavailable`. The file is on a network file system. Keep it on a local disk.",
    "RELET-NO-CREDENTIAL": "`Forbidden`, with status 401. No key, or one that opens nothing: `relet token`.",
    "RELET-NO-SERVICE": "`Unavailable`. No service answers at this address. Is `relet serve` running there?",
    "RELET-NO-TRY": "`Conflict`. This lease has made no such try of the effect. Nothing was kept.",
    "RELET-NOT-A-STORE": "`Invalid`. The file is there and belongs to something else. It was left as it is.",
    "RELET-NOT-ASKED": "`Conflict`. The task does not wait for this decision now. Nothing was kept.",
    "RELET-NOT-AWAITED": "On a task: its handler called a verb of `run` without `await`. Not tried again.",
    "RELET-NOT-WHOLE": "`Unavailable`. A copy does not hold what must hold of a store: `relet verify`.",
    "RELET-NOTHING": "`relet claim`: there was nothing to claim.",
    "RELET-OTHER-QUESTION": "`Conflict`. The question has changed since it was shown. Look at what is asked now.",
    "RELET-OTHER-STORE": "`Conflict`. Another store is in the place of a restore or a copy. It was left as it is.",
    "RELET-OWN-QUESTION": "`Forbidden`. Nobody answers the question of their own key. Decide with another one.",
    "RELET-POOLER": "`Invalid`. A pooler forbids what is needed. Pool by transaction, or connect directly.",
    "RELET-READ-ONLY": "`Unavailable`. This user may not write the file; a server is a standby, or set to read only.",
    "RELET-REPLACED": "`Unavailable`. The file was replaced or removed while it was open. Start the program anew.",
    "RELET-RESTORED": "`LeaseLost`. The store went on from a backup older than this lease. Stop this work.",
    "RELET-RESULT": "On a task: its result has no JSON form, or is too large. Not tried again.",
    "RELET-RIGHTS": "`Forbidden`. This role may not use or make the schema. The message says what to run.",
    "RELET-SIGNALS-FULL": "`Conflict`. The task keeps as many signals as it may. Send it once some are taken.",
    "RELET-SLOW": "`Unavailable`, with status 408. A body came too slowly. Nothing was done; send it again.",
    "RELET-STATE-DIR": "`Unavailable`. The folder of token marks cannot be used. Mend it, or set `RELET_STATE_DIR`.",
    "RELET-STEP-CHANGED": "`Conflict`. This step was kept for other arguments: the code before it has changed.",
    "RELET-TIME-NAMESPACE": "`Unavailable`. The file was opened in another time namespace. Run all users in one.",
    "RELET-TIMEOUT": "On a task: an attempt ran longer than its `timeout`. Of a command: not finished in time.",
    "RELET-TOKEN-REQUIRED": "`Invalid`, with status 428. A guarded request came without its two headers.",
    "RELET-TOO-LARGE": "`Invalid`, with status 413. A body is too large. Send less at once, or attach it.",
    "RELET-TOO-MANY": "`Unavailable`, with status 429. More requests or streams than allowed. Try a little later.",
    "RELET-TRANSACTION-ENDED": "`OutcomeUnknown`. Your own transaction was ended behind relet's back. Look.",
    "RELET-TRANSACTION-LONG": "`Refused`. Your own transaction took too long and was rolled back. Do less in it.",
    "RELET-UNREACHABLE": "`Unavailable`. No server answers at this address. Is it up, are host and port right?",
    "RELET-USAGE": "A command was used wrongly.",
    "RELET-WAIT-OVER": "`Conflict`. The time to decide ran out before this answer came. Nothing was changed.",
    "RELET-WAITING": "`relet result`, `relet answer`: nobody has answered yet; the message says how to.",
    "RELET-WRONG-HOST": "`Invalid`, with status 421. The service has no such name: `relet serve --host-name`.",
    "RELET-WRONG-METHOD": "`Invalid`, with status 405. The path is asked by another method; the message names it.",
}


def parts() -> dict[str, str]:
    """All tables of the page of errors."""
    rows = [[code(number), meaning] for number, meaning in ((int(key), text) for key, text in MEANINGS.items())]
    return {
        "errors": table(["error", "code", "exit", "when", "what to do"], _classes()),
        "error codes": table(["code", "when, and what to do"], [[code(key), text] for key, text in _codes().items()]),
        "exit codes": table(["exit code", "meaning"], rows),
    }


def classes() -> list[type[BaseException]]:
    """Every error of the core, in the order of its source."""
    found = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, BaseException)]
    return [one for one in found if one.__module__ == errors.__name__]


def _classes() -> Iterator[list[str]]:
    for one in classes():
        if one is errors.Error:
            continue
        is_error = issubclass(one, errors.Error)
        depth = "&nbsp;&nbsp;" * (len(one.__mro__) - len(errors.Refused.__mro__)) if is_error else ""
        exit_code = exit_of(_made(one)) if is_error else None
        yield [
            f"{depth}{code(one.__name__)}",
            code(one.code) if issubclass(one, errors.Error) else "",
            "" if exit_code is None else code(int(exit_code)),
            inspect.getdoc(one) or "",
            DO[one],
        ]


def _made(kind: type[BaseException]) -> Exception:
    made = kind("", reason="expired") if issubclass(kind, errors.LeaseLost) else kind("")
    assert isinstance(made, Exception), "relet's errors are exceptions"
    return made


def _codes() -> dict[str, str]:
    own = {one.code for one in classes() if issubclass(one, errors.Error)}
    given = codes_in_source() - own
    if given != set(CODES):
        raise LookupError(f"codes without a line in docs/generator/failures.py, or gone: {given ^ set(CODES)}")
    return dict(sorted(CODES.items()))


def codes_in_source() -> set[str]:
    """Every code that stands in the source as a text of its own."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found.add(node.value)
    return found
