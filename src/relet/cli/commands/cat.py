"""`relet cat`: the bytes of an artifact, or the value of a checkpoint."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from typing import Any, BinaryIO

import click
import msgspec

from relet.cli.options import verb
from relet.cli.session import Session
from relet.cli.words import clean, quoted
from relet.client.blocking import Client
from relet.core import limits
from relet.core.border import invalid, shown
from relet.core.errors import NotFound
from relet.core.work import Checkpoint

PIECE_BYTES = 1 << 20
SCHEME = "artifact:"
_VERSIONED = re.compile(r"(?P<name>.+)@(?P<version>\d{1,15})")
_VERSIONS = re.compile(r"(\d{1,15}):(\d{1,15})")


@verb(
    "cat",
    example="""relet cat r-1 page.html > page.html
relet cat r-1 main@3
relet cat r-1 main --diff 3:4
relet cat artifact:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824""",
)
@click.argument("task", metavar="TASK|URI")
@click.argument("name", required=False)
@click.option("--checkpoint", is_flag=True, help="NAME is a checkpoint's, not an artifact's.")
@click.option("--diff", metavar="OLD:NEW", help="What changed between two versions of a checkpoint.")
def cat(session: Session, task: str, name: str | None, checkpoint: bool, diff: str | None) -> None:
    """Print an artifact's bytes, or a checkpoint.

    NAME is an artifact's: the newest of the name. NAME@VERSION is a checkpoint, printed as JSON; with --checkpoint
    its newest version does without one. Bytes are checked before they are printed, large ones while they are. With
    --json an artifact of up to 8 MiB is an object, its bytes in base64.
    """
    client = session.existing()
    if name is None:
        if checkpoint or diff is not None or not task.startswith(SCHEME):
            raise invalid("name", "is missing; give TASK and NAME, or one artifact: URI")
        return _bytes(session, client, {"uri": task})
    if diff is not None:
        return _difference(session, client.checkpoints(task, name), task, name, diff)
    if not checkpoint:
        for one in reversed(client.artifacts(task)):
            if one.name == name:
                return _bytes(session, client, msgspec.structs.asdict(one))
    saved = _saved(client, task, name, checkpoint=checkpoint)
    if session.json:
        session.answer({"task_id": task, **msgspec.structs.asdict(saved)})
    else:
        session.data(_pretty(saved.value))
    return None


def _saved(client: Client, task: str, name: str, *, checkpoint: bool) -> Checkpoint:
    """The checkpoint that a name means which is no artifact's. Raises `NotFound`."""
    kept = client.checkpoints(task, name)
    if not (checkpoint and kept) and (found := _VERSIONED.fullmatch(name)) is not None:
        return _version(client.checkpoints(task, found["name"]), task, found["name"], int(found["version"]))
    if checkpoint:
        return _version(kept, task, name, None)
    way = f"relet cat {quoted(task)} {quoted(name)} --checkpoint" if kept else f"relet artifacts {quoted(task)}"
    raise NotFound(
        f"name: task {task} has no artifact {shown(name)} → {way}", field="name", task_id=task, name=name
    )  # fmt: skip


def _bytes(session: Session, client: Client, told: dict[str, Any]) -> None:
    with client.open(told["uri"]) as source:
        if session.json:
            session.answer({**told, "base64": b64encode(_small(source)).decode()})
            return
        while piece := source.read(PIECE_BYTES):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _small(source: BinaryIO) -> bytes:
    data = source.read(limits.ARTIFACT_WHOLE_BYTES_MAX + 1)
    if len(data) > limits.ARTIFACT_WHOLE_BYTES_MAX:
        raise invalid("json", "the artifact has more than 8 MiB, too many for an object; leave out --json")
    return data


def _version(kept: list[Checkpoint], task: str, name: str, version: int | None) -> Checkpoint:
    """One of the kept versions. Raises `NotFound`, naming those there are."""
    for one in kept:
        if version in (None, one.version):
            return one
    there = f"kept are {kept[-1].version} to {kept[0].version}" if kept else "nothing is saved under that name"
    which = shown(name) if version is None else f"version {version} of {shown(name)}"
    raise NotFound(
        f"name: task {task} has no checkpoint {which}; {there} → relet show {quoted(task)}",
        field="name", task_id=task, name=name, version=version,
    )  # fmt: skip


def _difference(session: Session, kept: list[Checkpoint], task: str, name: str, versions: str) -> None:
    import difflib

    found = _VERSIONS.fullmatch(versions)
    if found is None:
        raise invalid("diff", f"{shown(versions)} names no two versions; write 3:4")
    old, new = (_version(kept, task, name, int(number)) for number in found.groups())
    lines = list(difflib.unified_diff(
        _pretty(old.value).splitlines(), _pretty(new.value).splitlines(), f"{clean(name)}@{old.version}",
        f"{clean(name)}@{new.version}", lineterm="",
    ))  # fmt: skip
    if session.json:
        session.answer({"task_id": task, "name": name, "old": old.version, "new": new.version, "diff": lines})
        return
    for line in lines:
        session.data(line)
    if not lines:
        session.talk(f"versions {old.version} and {new.version} of {name} are the same")


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
