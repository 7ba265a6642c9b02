"""Few arenas for many threads: asked of glibc, and of nothing that is another library."""

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from relet.server import arenas

COUNTED = """
import ctypes, re, sys, threading
from relet.server.arenas import keep_few
if sys.argv[1] == "few":
    assert keep_few()
libc = ctypes.CDLL(None)
take = libc.malloc
take.restype = ctypes.c_void_p
threads = [threading.Thread(target=lambda: (take(100_000), barrier.wait())) for _ in range(8)]
barrier = threading.Barrier(9)
for thread in threads:
    thread.start()
barrier.wait()
libc.fopen.restype = ctypes.c_void_p
out = libc.fopen(sys.argv[2].encode(), b"w")
libc.malloc_info(0, ctypes.c_void_p(out))
libc.fclose(ctypes.c_void_p(out))
"""


def has_glibc():
    return hasattr(ctypes.CDLL(None), "malloc_info") if sys.platform.startswith("linux") else False


@pytest.mark.skipif(not has_glibc(), reason="another C library")
def test_threads_share_two_arenas(tmp_path):
    def made(which):
        told = tmp_path / which
        free = {name: value for name, value in os.environ.items() if name not in arenas.CHOSEN_BY}
        subprocess.run([sys.executable, "-c", COUNTED, which, str(told)], check=True, timeout=60, env=free)
        return told.read_text().count("<heap nr=")

    assert (made("few"), made("all") > arenas.ARENAS) == (arenas.ARENAS, True)


@pytest.mark.parametrize(("platform", "library"), [("darwin", None), ("linux", SimpleNamespace())])
def test_where_there_is_no_such_call_none_is_made(monkeypatch, platform, library):
    monkeypatch.setattr(arenas.sys, "platform", platform)
    monkeypatch.setattr(arenas, "ctypes", SimpleNamespace(CDLL=lambda _name: library))
    assert (arenas.keep_few(), arenas.give_back()) == (False, False)


@pytest.mark.skipif(not has_glibc(), reason="another C library")
def test_what_a_burst_took_is_handed_back():
    """In a process of its own: whatever else this one keeps is not in the way."""
    program = (
        "import ctypes; from pathlib import Path; from relet.server.arenas import give_back\n"
        "libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p\n"
        "def here(): return int(Path('/proc/self/statm').read_text().split()[1]) * 4096\n"
        "taken = [libc.malloc(100_000) for _ in range(500)]\n"
        "for one in taken: ctypes.memset(ctypes.c_void_p(one), 1, 100_000)\n"
        "pin = libc.malloc(100_000)\n"
        "for one in taken: libc.free(ctypes.c_void_p(one))\n"
        "before = here(); assert give_back(); print(before - here())"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True)
    assert int(ran.stdout) > 40_000_000


@pytest.mark.parametrize("name", arenas.CHOSEN_BY)
def test_what_an_operator_has_chosen_stands(monkeypatch, name):
    monkeypatch.setenv(name, "4")
    assert not arenas.keep_few()
