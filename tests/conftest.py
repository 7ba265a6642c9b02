"""What every test starts from: its own state folder, nobody's settings, a Hypothesis profile and seed."""

import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# Before any test module is imported, and once per xdist worker: no test sees, or leaves behind, real state.
for _name in [name for name in os.environ if name.startswith("RELET_")]:
    if not _name.startswith("RELET_TEST_"):
        del os.environ[_name]
# Stores of tests live in memory where there is room: what fsync costs is measured by the bench, not here.
_SHM = Path("/dev/shm")
if _SHM.is_dir() and shutil.disk_usage(_SHM).free > 1 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(_SHM)
_STATE = Path(tempfile.mkdtemp(prefix="relet-tests-"))
os.environ["RELET_STATE_DIR"] = str(_STATE)

# No deadline: how long an example takes is set by the disk, not by the code under test.
settings.register_profile(
    "ci", max_examples=200, stateful_step_count=50, deadline=None, derandomize=False, print_blob=True
)
settings.register_profile(
    "dev", max_examples=50, stateful_step_count=30, deadline=None, derandomize=False, print_blob=True
)
_PROFILE = "ci" if os.environ.get("CI") else "dev"
settings.load_profile(_PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.addinivalue_line("markers", "faults: kills, freezes or cuts off processes; run by `make faults`")
    config.addinivalue_line(
        "markers", "browser: in a real Chromium, which is a system package; run by `make browser`"
    )
    config.addinivalue_line("markers", "postgres: needs PostgreSQL servers; run by `make postgres`")
    config.addinivalue_line("markers", "long: one of many of a kind; left out of `make faults QUICK=yes`")
    config.addinivalue_line("markers", "slow: left out of `make check`, run by `make test`")
    # On a build machine a failure must be repeatable from the log alone. Elsewhere the seed stays free, since
    # a fixed one would switch off Hypothesis' memory of earlier failures.
    if _PROFILE == "ci" and config.option.hypothesis_seed is None:
        # xdist workers inherit the environment, not this option.
        seed = os.environ.setdefault("RELET_TEST_SEED", str(random.randrange(2**32)))
        config.option.hypothesis_seed = seed


def pytest_report_header(config):
    seed = config.option.hypothesis_seed
    if seed is None:
        return f"hypothesis: profile {_PROFILE}, seed free (failures are kept in .hypothesis)"
    return f"hypothesis: profile {_PROFILE}, repeat with --hypothesis-seed={seed}"


def pytest_unconfigure():
    shutil.rmtree(_STATE, ignore_errors=True)
