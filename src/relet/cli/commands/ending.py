"""`relet complete`, `relet fail`, `relet release`: the three ways to end a lease."""

from __future__ import annotations

import click

from relet.cli.handles import holder_verb, read_handle
from relet.cli.session import Session
from relet.cli.values import STDIN, json_of, text_of
from relet.cli.words import clean, span
from relet.client import asks
from relet.core.errors import Error
from relet.core.model import Handle
from relet.core.rules.finish import Ended


@holder_verb("complete", example="""relet complete '{"pages": 12}' --handle-file .handle""")
@click.argument("result", metavar="[JSON]", required=False)
def complete(session: Session, result: str | None, handle_file: str | None) -> None:
    """Hand in the result: the task is done.

    JSON is text, @file, or - for stdin; without it the result is null. Repeating it with the same result is safe.
    Ends with exit code 5 when the lease is lost: the task is somebody else's, and nothing of it was changed.
    """
    handle = read_handle(handle_file, stdin_taken=result == STDIN)
    client, value = session.existing(), json_of("result", result)
    ask = asks.complete([(handle, client.files.filed("result", value))])
    outcome: Ended | Error = client.backend.call(ask).outcomes[0]
    if isinstance(outcome, Error):
        raise outcome
    told(session, handle, outcome)


@holder_verb("fail", example="""relet fail "the site answers 503" --delay 5m --handle-file .handle""")
@click.argument("error", metavar="TEXT")
@click.option("--no-retry", is_flag=True, help="Fail the task for good.")
@click.option("--delay", metavar="DURATION", help="Try again after so long.  [default: the backoff]")
@click.option("--code", help="The error's name for machines, such as HTTP-503.")
def fail(
    session: Session, error: str, no_retry: bool, delay: str | None, code: str | None, handle_file: str | None
) -> None:  # fmt: skip
    """End an attempt that went wrong; the task is tried again, or not.

    TEXT says what went wrong: itself, @file, or - for stdin. It counts as a failure.
    """
    handle = read_handle(handle_file, stdin_taken=error == STDIN)
    ask = asks.fail(handle, text_of("error", error).rstrip("\n"), not no_retry, delay, code)
    told(session, handle, session.existing().backend.call(ask))


@holder_verb("release", example="relet release --handle-file .handle")
@click.option(
    "--delay", metavar="DURATION", default="0", help="Keep the task out of reach for so long.  [default: 0]"
)
def release(session: Session, delay: str, handle_file: str | None) -> None:
    """Give the task back unfinished; costs no attempt."""
    handle = read_handle(handle_file)
    told(session, handle, session.existing().backend.call(asks.release(handle, delay)))


def told(session: Session, handle: Handle, ended: Ended) -> None:
    """How a lease ended, and where the task stands after it."""
    if session.json:
        session.answer({
            "task_id": handle.task_id, "token": handle.token, "state": ended.state, "reason": ended.reason,
            "delay": ended.delay_ms / 1_000,
        })  # fmt: skip
        return
    words = [str(ended.state)]
    if ended.reason:
        words.append(f"({clean(ended.reason)})")
    if ended.delay_ms:
        words.append(f"in {span(ended.delay_ms / 1_000)}")
    session.data(" ".join(words))
