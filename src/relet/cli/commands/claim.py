"""`relet claim`: take a task under a new lease."""

from __future__ import annotations

import os
import platform
from typing import Any

import click

from relet.cli.bounds import held_back_in, why_waiting
from relet.cli.exits import Exit
from relet.cli.handles import HandleFile, HolderVerb, read_handle
from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import now_utc, quoted, until, when
from relet.client.blocking import Client
from relet.client.blocking_lease import Lease
from relet.core import border
from relet.core.border import invalid
from relet.core.model import State


@verb(
    "claim",
    cls=HolderVerb,
    example="""relet claim reports --ttl 2m --handle-file .handle
export RELET_HANDLE=$(relet claim reports | jq -r .handle)
relet claim --task r-1 --wait 30s""",
)
@click.argument("queues", metavar="[QUEUE]...", nargs=-1)
@click.option("--task", "task_id", metavar="ID", help="This very task, whatever its place in the queue.")
@click.option("--holder", metavar="NAME", help="The name to claim as.  [default: this host and shell]")
@click.option("--ttl", metavar="DURATION", help="How long the lease lasts without a heartbeat, such as 2m.")
@click.option("--kind", "kinds", multiple=True, help="Only of this kind. Repeatable.")
@click.option("--wait", metavar="DURATION", default="0", help="Wait so long for a task.  [default: 0]")
@click.option("--request-id", metavar="KEY", help="Repeating it gets the same lease again, never another.")
@click.option(
    "--handle-file", metavar="FILE", help="Write the handle there, readable by you alone, and do not print it."
)
@click.option("--resume", is_flag=True, help="With --task: show the last handle, and so pass over a delay.")
def claim(
    session: Session, queues: tuple[str, ...], task_id: str | None, holder: str | None, ttl: str | None,
    kinds: tuple[str, ...], wait: str, request_id: str | None, handle_file: str | None, resume: bool,
) -> Exit | None:  # fmt: skip
    """Take one task under a new lease, and print it as JSON.

    The handle in it is the proof that you hold the lease: keep it to yourself, and renew it before `expires_in`
    seconds have passed. Ends with exit code 3 when there is nothing to claim, and with 6 when the task that --task
    names is held by another.
    """
    if resume and task_id is None:
        raise invalid("resume", "goes with --task")
    last = border.handle_text(read_handle(handle_file)) if resume else None
    client = session.client()
    file = None if handle_file is None else HandleFile(handle_file)
    try:
        lease = client.claim(
            list(queues) or None, task_id=task_id, holder=session.value("holder", holder) or shell_holder(),
            ttl=session.value("ttl", ttl), kinds=kinds or None, wait=wait, request_id=request_id, handle=last,
        )  # fmt: skip
        if lease is None:
            return _nothing(session, client, queues, task_id)
        return _handed_over(session, lease, file)
    finally:
        if file is not None:
            file.discard()


def shell_holder() -> str:
    """A label for whoever ran this command: it outlives the command itself."""
    return f"{platform.node() or 'host'}:{os.getppid()}"


def _handed_over(session: Session, lease: Lease, file: HandleFile | None) -> Exit | None:
    """Give the lease to the caller; one that cannot be told of would only stand in the way until it lapsed."""
    try:
        if file is not None:
            file.write(lease.handle)
        session.answer(granted(lease, str(file.path) if file else None))
    except (OSError, KeyboardInterrupt):
        lease.release()
        session.talk(f"task {lease.task_id} was given back: its handle could not be handed over")
        return Exit.FAILED
    return None


def granted(lease: Lease, handle_file: str | None) -> dict[str, Any]:
    """A lease as `relet claim` prints it; the handle only where it is not kept in a file."""
    took_over = lease.took_over
    return {
        "task_id": lease.task_id, "handle": lease.handle if handle_file is None else None, "handle_file": handle_file,
        "token": lease.token, "attempt": lease.attempt, "holder": lease.holder, "queue": lease.queue,
        "kind": lease.kind, "labels": lease.labels, "input": lease.input, "ttl": lease.ttl,
        "expires_in": round(lease.expires_in, 3), "renew_by": when(lease.renew_by), "took_over": took_over,
    }  # fmt: skip


def _nothing(session: Session, client: Client, queues: tuple[str, ...], task_id: str | None) -> Exit:
    if task_id is None:
        return session.decline(
            Exit.NOTHING,
            "RELET-NOTHING",
            f"nothing to claim in {', '.join(queues)} of {session.place}{held_back_in(client, queues)}",
            queues=queues,
        )
    task = client.task(task_id)
    if task.live:
        return session.decline(
            Exit.HELD, "RELET-HELD",
            f"task {task_id} is held by {task.holder} (token {task.token}), for {until(task.expires_at, now_utc())} "
            f"unless renewed; nothing was claimed → relet show {quoted(task_id)}",
            task_id=task_id, holder=task.holder, token=task.token, expires_at=task.expires_at,
        )  # fmt: skip
    (queue,) = client.queues(task.queue, task.share)
    why = f"cannot be claimed now: {why_waiting(queue, task.share) or 'its exclusive key is busy'}"
    if task.state is State.READY and task.due_at is not None and task.due_at > now_utc():
        why = f"is due in {until(task.due_at, now_utc())}"
    return session.decline(
        Exit.NOTHING, "RELET-NOTHING", f"task {task_id} {why}; nothing was claimed → relet show {quoted(task_id)}",
        task_id=task_id, state=task.state,
    )  # fmt: skip
