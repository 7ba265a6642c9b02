"""SQ-10: a disk of 8 MB is filled under a store. Verbs say so and change nothing; once there is room all goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.program import IMPORTS

pytestmark = pytest.mark.faults
PROGRAM = Path(__file__).parents[1] / "processes" / "programs" / "full_disk.py"
# A mount of its own, gone with the process; whoever is not root becomes it in a namespace.
APART = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--user", "--map-root-user"]
ON_A_SMALL_DISK = 'mount -t tmpfs -o size=8m none "$1" && exec "$2" "$3" "$1"'


def test_sq_10_a_full_disk_is_an_answer_and_passes(tmp_path):
    done = subprocess.run(
        [*APART, "sh", "-c", ON_A_SMALL_DISK, "sh", tmp_path, sys.executable, PROGRAM],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": IMPORTS},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for verb in ("save", "submit", "claim"):
        at_last, all_of_them = told[verb]
        assert at_last == "RELET-FULL", told
        assert set(all_of_them) <= {"ok", "RELET-FULL"}
    assert told["attach"][0] == "RELET-FULL", told
    assert told["backup"] == "RELET-FULL"
    assert (told["renew"], told["status"]) in {("ok", "held"), ("RELET-FULL", "doubtful"), ("RELET-FULL", "held")}
    assert told["read"] == "leased"
    assert told["verify_full"] == told["verify"] == told["left"] == []
    assert told["again"] == ["ok"] * 3
    assert told["claim_again"] is True
    assert told["result"] == "done"
