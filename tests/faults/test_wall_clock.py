"""The wall clock of a process is stepped under it, by libfaketime; who holds what does not change."""

import os
import shutil
from pathlib import Path

import pytest

from tests.processes.recording import gaps_s, record_beats
from tests.processes.whole import is_whole
from tests.waiting import eventually

pytestmark = pytest.mark.faults
PROGRAMS = Path(__file__).parents[1] / "processes" / "programs"
