"""What an import loads, whatever else is installed. (The arrows between the rooms are import-linter's.)"""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED_BY = """
import sys
before = set(sys.modules)
import {module}
print(*sorted({{name.partition(".")[0] for name in sys.modules.keys() - before}}))
"""


def packages_loaded_by(module):
    done = subprocess.run(
        [sys.executable, "-c", LOADED_BY.format(module=module)], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split()) - sys.stdlib_module_names


def test_importing_relet_loads_only_the_base_packages():
    # msgspec imports typing_extensions where some other package has brought it.
    assert packages_loaded_by("relet") <= {"relet", "apsw", "msgspec"} | packages_loaded_by("msgspec")


def test_the_core_needs_msgspec_only():
    assert packages_loaded_by("relet.core") <= {"relet", "msgspec"} | packages_loaded_by("msgspec")


@pytest.mark.parametrize("module", ["click", "pytest"])
def test_a_package_outside_the_base_is_seen(module):
    assert module in packages_loaded_by(module)


def test_the_base_install_is_three_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [line.partition(">")[0] for line in project["dependencies"]] == ["apsw", "msgspec", "click"]
