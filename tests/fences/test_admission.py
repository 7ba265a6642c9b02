"""What all fences share: names as parts of paths, and what an import loads."""

import os
import subprocess
import sys
import unicodedata

import pytest

from relet import fences
from relet.core import limits
from relet.fences.admission import spelled
from relet.testing.fence_kit import ODD_NAMES

DRIVERS = {"psycopg", "redis", "obstore", "httpx2", "valkey", "boto3"}


def test_spelled_names_are_plain_short_and_as_different_as_the_names():
    names = [
        *ODD_NAMES,
        "a/b",
        "a=2Fb",
        "a.b",
        "..",
        ".",
        "é",
        unicodedata.normalize("NFD", "é"),
        "é" * 200,
        "é" * 199,
    ]
    parts = [spelled(name) for name in names]
    assert len(set(parts)) == len(set(names)) == len(names)
    for part in parts:
        assert 0 < len(part) <= limits.FENCE_NAME_CHARS_MAX
        assert set(part) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-=.")
        assert not part.startswith(".") and not part.endswith(".")


@pytest.mark.parametrize("name", fences.__all__)
def test_a_fence_loads_the_driver_of_its_own_target_alone(name):
    own = {"PostgresFence": "psycopg", "RedisFence": "redis", "ObjectFence": "obstore"}
    script = f"import sys; from relet.fences import {name}; print(*sys.modules)"
    loaded = {one.partition(".")[0] for one in python(script).stdout.split()}
    assert loaded & DRIVERS == ({own[name]} if name in own else set())


@pytest.mark.parametrize(
    ("name", "driver", "extra"),
    [
        ("PostgresFence", "psycopg", "postgres"),
        ("RedisFence", "redis", "redis"),
        ("ObjectFence", "obstore", "objects"),
    ],
)
def test_without_its_driver_a_fence_says_what_to_install(name, driver, extra):
    done = python(f"import sys; sys.modules[{driver!r}] = None; from relet.fences import {name}", check=False)
    assert f"{name} needs {driver}, which is not installed → pip install 'relet[{extra}]'" in done.stderr


def test_a_name_that_is_no_fence_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'PaperFence'"):
        fences.PaperFence  # noqa: B018 - the look-up is the point


def python(script, *, check=True):
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=check, env=environment
    )
