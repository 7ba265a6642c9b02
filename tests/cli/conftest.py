"""A shell user's machine: an empty folder, a store in it, and `relet`, in this process or in one of its own."""

import io
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from relet.cli.main import run
from relet.connect import connect
from relet.testing.clock import Clock


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self):
        return json.loads(self.err)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder that commands run in; nobody's settings reach them."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RELET_STATE_DIR", str(tmp_path / "state"))
    for name in ("XDG_CONFIG_HOME", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return here


@pytest.fixture
def relet(capsys, monkeypatch):
    """Run a command in this process; `stdin` is what is sent to it, a terminal without words unless given."""

    def call(*args, stdin=None):
        source = io.StringIO(stdin or "")
        source.isatty = lambda: stdin is None
        monkeypatch.setattr(sys, "stdin", source)
        capsys.readouterr()
        code = run([str(arg) for arg in args])
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def process(folder):
    """Run the installed command as a process."""

    def call(*args, stdin="", env=(), **options):
        done = subprocess.run(
            [program(), *map(str, args)], input=stdin, capture_output=True, text=True, timeout=30, check=False,
            cwd=folder, env={**os.environ, **dict(env)}, **options,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    return call


def program():
    """Where the entry point is installed."""
    return str(Path(sys.executable).with_name("relet"))


@pytest.fixture
def db(folder):
    """The store that commands use when nothing else is said, as a client."""
    with connect(f"sqlite:///{folder}/relet.db", holder="test") as client:
        yield client


@pytest.fixture
def clock(monkeypatch):
    """Stores and holders of this process obey it; it starts at this moment, and is told to go on."""
    steered = Clock()
    steered.step(time.time() - steered.wall_ms() / 1_000)
    monkeypatch.setattr("relet.store.sqlite.engine.SystemClock", lambda: steered)
    monkeypatch.setattr("relet.store.sqlite.adopt.SystemClock", lambda: steered)
    monkeypatch.setattr("relet.store.sqlite.examine.SystemClock", lambda: steered)
    monkeypatch.setattr("relet.client.blocking.SystemHolderClock", lambda: steered)
    for command in ("account", "commands.claim", "commands.ls", "commands.show", "commands.waits"):
        monkeypatch.setattr(
            f"relet.cli.{command}.now_utc", lambda: datetime.fromtimestamp(steered.wall_ms() / 1_000, UTC)
        )
    return steered


@pytest.fixture
def held(relet):
    """Claim a new task of a queue, and put its handle where commands look for it."""

    def call(id="t-1", ttl="60s", holder="A", **environment):
        relet("submit", "q", '{"n": 1}', "--id", id)
        claimed = relet("claim", "--task", id, "--holder", holder, "--ttl", ttl, "--handle-file", f"{id}.handle")
        assert claimed.code == 0, claimed.err
        return claimed.json

    return call
