"""Findings about what a store stands on: the engine, the file, the disk, the clock, the marks of tokens."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from relet.core import limits
from relet.core.doctor.facts import Facts
from relet.core.doctor.report import Check, Found, Problem, amiss, size
from relet.core.mounts import NETWORK_FILE_SYSTEMS
from relet.core.pasting import command

IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
SYNCHRONOUS_FULL: Final = 2
NAMES_SHOWN: Final = 20


def engine(facts: Facts) -> Found:
    """A SQLite that cannot corrupt a file that several connections write."""
    version, trouble = facts.place.engine, facts.place.engine_trouble
    if trouble is None:
        return Found(f"SQLite {version}")
    return amiss(f"SQLite {version}", trouble, "pip install --upgrade apsw", version=version)


def one_engine(facts: Facts) -> Found | None:
    """No process reads the store through two copies of SQLite, which drop each other's locks."""
    if facts.place.processes is None:
        return None
    problems = [
        Problem(
            f"process {one.pid} ({one.command}) has the store open through {one.engines} copies of SQLite: when one "
            "of them closes the file, the locks of the other are gone, and two may write at once",
            "open the file with apsw alone in that process, never with the sqlite3 module: apsw.Connection(db.place)",
            {"pid": one.pid, "command": one.command, "engines": one.engines},
        )
        for one in facts.place.processes
        if one.engines > 1
    ]
    return Found(f"{len(facts.place.processes)} have it open{_openers(facts, ': ')}", tuple(problems))


def _openers(facts: Facts, before: str) -> str:
    """Whoever has it open, with a word before them; nothing where that is nobody, or not told."""
    openers = [f"{one.pid} ({one.command})" for one in facts.place.processes or ()]
    return f"{before}{_listed(openers)}" if openers else ""


def present(facts: Facts) -> Found | None:
    """There is a file, and this relet knows its schema."""
    if (file := facts.place.file) is None:
        return None
    if not file.exists:
        fix = "name the store that you meant with --url or RELET_URL; a submit makes a new one"
        return amiss("no file", f"there is no file {file.path}", fix, path=file.path)
    if file.schema is None:
        return Found("no store")  # what it is instead is said where it cannot be opened
    seen = f"schema {file.schema}"
    if file.schema >= file.knows_schema:
        return Found(seen)
    return amiss(
        seen, f"{file.path} has schema {file.schema}, this relet needs {file.knows_schema}",
        "open it with the relet that made it, or, once nobody has it open, bring it up to date: relet migrate",
        schema=file.schema, knows=file.knows_schema,
    )  # fmt: skip


def moved(facts: Facts) -> Found | None:
    """The store is still in its place."""
    if (facts.place.file if facts.server is None else facts.server.schema) is None:
        return None
    if (left := facts.moved) is None:
        return Found("no")
    if facts.server is not None:
        fix = "have every program use that file; the schema here can be removed, or filled anew: relet copy"
        return amiss("away", f"{left.told}; nobody may use what is here", fix, to=left.to)
    assert facts.place.file is not None, "it is in a file, or on a server"
    back = command("copy", f"sqlite:///{facts.place.file.path}", left.to, options=("--back",))
    fix = f"have every program use that address; as long as nobody has worked there it can be taken back: {back}"
    return amiss("away", f"{left.told}; this file can be read, and refuses every write", fix, to=left.to)


def opens(facts: Facts) -> Found:
    """It can be opened, and asked."""
    if facts.refused is None:
        return Found("opened" if facts.work else "not tried")
    evidence = f"{facts.refused}{_openers(facts, '; it is open in ')}"
    return amiss(
        "cannot be opened", evidence, "as the message says", pids=[one.pid for one in facts.place.processes or ()]
    )


def tenants(facts: Facts) -> Found | None:
    """Nobody's work goes unseen, unless one tenant alone was asked for."""
    if not (seen := [work.tenant for work in facts.work]):
        return None
    looked_at = f"{len(seen)} looked at: {_listed(seen)}"
    if not facts.others:
        return Found(looked_at)
    looked_at += f"; not looked at: {_listed(facts.others)}"
    if facts.alone:
        return Found(looked_at)
    return amiss(
        looked_at, f"the store has more tenants than are looked at in one go, which are {len(seen)}; the next one is "
        + facts.others[0],
        f"{command('doctor', tenant=facts.others[0])}, and so on; all of them: relet tenants", looked_at=len(seen),
        next=facts.others[0],
    )  # fmt: skip


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return f"{shown} and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else shown


def file_system(facts: Facts) -> Found | None:
    """A local disk that outlives the machine's next start."""
    if (file := facts.place.file) is None:
        return None
    kind = file.file_system
    if kind in NETWORK_FILE_SYSTEMS:
        return amiss(
            kind, f"{file.path} is on {kind}, a shared drive, where SQLite's locks do not hold",
            "move it to a local disk of the one machine whose processes use it, then: relet adopt", file_system=kind,
        )  # fmt: skip
    if kind in IN_MEMORY:
        return amiss(
            kind, f"{file.path} is on {kind}, which is memory: the next start of the machine takes it all",
            "keep it on a disk, if its tasks should outlive the machine's next start", file_system=kind,
        )  # fmt: skip
    return Found(kind)


def rights(facts: Facts) -> Found | None:
    """Nobody but its owner may read what is in it, or write."""
    if facts.place.file is None:
        return None
    if not (paths := facts.place.file.open_to_others):
        return Found("for their owner alone")
    return amiss(
        f"{len(paths)} open to others",
        f"others than the owner may read or write {', '.join(paths)}: all inputs and results, and the key of all "
        "handles",
        f"chmod go= {' '.join(map(shlex.quote, paths))}", paths=paths,
    )  # fmt: skip


def journal_mode(facts: Facts) -> Found | None:
    """Readers and the one writer do not wait for each other."""
    if facts.place.file is None or (mode := facts.place.file.journal_mode) is None:
        return None
    if mode == "wal":
        return Found(mode)
    return amiss(
        mode, f"the file is in journal mode {mode}: somebody took it out of WAL mode, in which relet keeps it",
        "let no other program set journal_mode on this file; relet sets it anew when it opens the store",
        journal_mode=mode,
    )  # fmt: skip


def sync_mode(facts: Facts) -> Found | None:
    """What is acknowledged is on disk."""
    if facts.place.file is None or (level := facts.place.file.synchronous) is None:
        return None
    if level >= SYNCHRONOUS_FULL:
        return Found("FULL")
    return amiss(
        f"synchronous={level}",
        f"connections come up with synchronous={level}: a power cut can undo what was acknowledged, and give out "
        "tokens a second time",
        "use the apsw of the package index: this build of SQLite does not take PRAGMA synchronous=FULL",
        synchronous=level,
    )  # fmt: skip


def wal_size(facts: Facts) -> Found | None:
    """No reader keeps the log from being emptied."""
    if (file := facts.place.file) is None or not file.exists:
        return None
    seen = f"{size(file.wal_bytes)}, {size(limits.DOCTOR_WAL_BYTES)} at most"
    if file.wal_bytes <= limits.DOCTOR_WAL_BYTES:
        return Found(seen)
    return amiss(
        seen,
        f"{file.path}-wal has {size(file.wal_bytes)}: some reader keeps one transaction open while others write"
        + _openers(facts, "; it is open in "),
        "end the program that reads the file in one long transaction (a shell, a copy, a viewer)",
        wal_bytes=file.wal_bytes,
    )  # fmt: skip


def free_space(facts: Facts) -> Found | None:
    """The disk has room for what is to come."""
    if facts.place.file is None or (free := facts.place.file.free_bytes) is None:
        return None
    seen = f"{size(free)} free"
    if free >= limits.DOCTOR_FREE_BYTES:
        return Found(seen)
    return amiss(
        seen, f"the disk of the store has {size(free)} left; once it is full, claims and saves are refused",
        "free some space, or move the store to another disk, then: relet adopt", free_bytes=free,
    )  # fmt: skip


def clock(facts: Facts) -> Found:
    """Time that no step of the wall clock moves, of this run of this machine."""
    own = facts.place.clock
    seen = f"{own.source}, boot {own.boot_id[:8]}" if own.boot_id else own.source
    if not own.boot_id:
        return amiss(
            seen, "this platform tells no boot id, so that the store goes by the wall clock: a step of it forward "
            "ends leases early",
            "let the machine's clock be slewed, never stepped, while workers run",
        )  # fmt: skip
    boots = {"boot_id": own.boot_id, "store_boot_id": own.store_boot_id}
    if own.store_boot_id == own.boot_id and own.store_time_namespace != own.time_namespace:
        return amiss(
            seen, "the store is used in another time namespace, whose clock is shifted against this one",
            "run all its users in the same time namespace", **boots,
        )  # fmt: skip
    # Another boot of the same machine is taken in when the store is opened next.
    if own.store_boot_id in (None, own.boot_id) or (own.machine_id and own.store_machine_id == own.machine_id):
        return Found(seen)
    return amiss(
        seen, "the store was last used on another machine: it was moved, restored, or is shared",
        "if no other copy of it is in use: relet adopt", **boots,
    )  # fmt: skip


def state_folder(facts: Facts) -> Found | None:
    """The mark that keeps a restored backup from giving out tokens again is there, and can be written."""
    if (state := facts.place.state) is None:
        return None
    what = f"{state.folder}, where the marks of tokens are kept,"
    fix = "make the folder writable, or set RELET_STATE_DIR to one that lasts, outside of what is backed up"
    if not state.exists:
        if state.store_id is None:
            return Found(f"{state.folder}, not made yet")
        return amiss("no folder", f"{what} is gone: the next grant begins a new epoch", fix, folder=state.folder)
    if not state.writable:
        return amiss("not writable", f"{what} cannot be written: claims are refused", fix, folder=state.folder)
    if state.store_id is not None and not state.has_mark:
        return amiss(
            "no mark", f"{what} holds none of this store: it was lost, or the file came from elsewhere; the next "
            "grant begins a new epoch",
            "let RELET_STATE_DIR name a folder that lasts; in a container, one on a volume", folder=state.folder,
        )  # fmt: skip
    return Found(state.folder)


PLACE_CHECKS: Final = (
    Check("engine", engine),
    Check("one-engine", one_engine),
    Check("file", present),
    Check("moved", moved),
    Check("opens", opens),
    Check("tenants", tenants),
    Check("file-system", file_system),
    Check("rights", rights),
    Check("journal-mode", journal_mode),
    Check("sync-mode", sync_mode),
    Check("wal-size", wal_size),
    Check("free-space", free_space),
    Check("clock", clock),
    Check("state-folder", state_folder),
)
