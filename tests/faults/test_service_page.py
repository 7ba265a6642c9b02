"""The page on the service does what it says, from `relet serve` to curl; it needs a port, and tools of the system."""

import socket
import sys
from pathlib import Path

import pytest

from tests.docs import runner
from tests.faults.test_curl_worker import require_tools
from tests.processes.program import ROOT

pytestmark = pytest.mark.faults
PAGE = ROOT / "docs" / "guides" / "service.md"
RUN_HERE = "run with the tests of faults"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return str(listening.getsockname()[1])


def test_every_command_of_the_page_does_what_the_page_says(tmp_path, monkeypatch):
    require_tools()
    port = free_port()
    monkeypatch.setattr(runner, "PROGRAMS", runner.PROGRAMS | {"curl"})
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("RELET_URL", f"sqlite:///{tmp_path}/relet.db")
    monkeypatch.setenv("RELET_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("RELET_LISTEN", f"127.0.0.1:{port}")
    here = tmp_path / "page.md"
    here.write_text(PAGE.read_text(encoding="utf-8").replace(":8787", f":{port}"), encoding="utf-8")
    blocks = [block for block in runner.read_blocks(here) if RUN_HERE in block.mark_text]
    assert len(blocks) == PAGE.read_text(encoding="utf-8").count(RUN_HERE) > 3
    with runner.Session(tmp_path) as reader:
        for block in blocks:
            reader.run_console(block)
