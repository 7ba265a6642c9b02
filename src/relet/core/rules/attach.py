"""attach: publish bytes by name under a lease; they are stored before, and visible from this commit on."""

from __future__ import annotations

from typing import Final

from relet.core.backend import Request
from relet.core.errors import Error
from relet.core.fields import ArtifactUri, FileName, Sha256, Size
from relet.core.model import Cause, Handle, date
from relet.core.operation import Operation
from relet.core.rules.guard import Repeat, hold
from relet.core.states import move
from relet.core.tx import Tx
from relet.core.work import Artifact
from relet.core.work_tx import ArtifactRow


class Attach(Request, frozen=True, kw_only=True):
    """Where the bytes are, and what they must be."""

    handle: Handle
    name: FileName
    uri: ArtifactUri
    sha256: Sha256
    size: Size

    def at_odds(self) -> tuple[str, str] | None:
        """The address says what the bytes are, as the digest does."""
        return None if self.uri.endswith(self.sha256) else ("uri", "is of other bytes than sha256; give both of one")


async def attach(tx: Tx, ask: Attach) -> Artifact | Error:
    """Make it the newest artifact of its name; what a loser of the lease stored is never published."""
    held = await hold(tx, ask.handle)
    if isinstance(held, Error):
        return held
    assert not isinstance(held, Repeat), "only verbs that end a lease repeat"
    lease, task, at = held
    last = await tx.find_artifact(task.seq, ask.name)
    if last is not None and last.uri == ask.uri:
        return last  # the same bytes: said twice, or attached again by a handler that began anew
    await tx.insert_artifact(
        ArtifactRow(
            task_seq=task.seq, name=ask.name, uri=ask.uri, sha256=ask.sha256, size=ask.size, token=lease.token,
            wall_ms=at.wall_ms,
        )
    )  # fmt: skip
    task.state = move(task.state, Cause.ATTACHED)
    await tx.add_event(task, Cause.ATTACHED, at, lease.token, lease.holder, name=ask.name, uri=ask.uri, size=ask.size)
    return Artifact(
        name=ask.name, uri=ask.uri, sha256=ask.sha256, size=ask.size, token=lease.token, at=date(at.wall_ms)
    )


ATTACH: Final = Operation("attach", Attach, Artifact, attach, "Publish stored bytes by name.")
