"""What tests of the larger examples start from: their services, each in a process of its own."""

import json
import urllib.request
from pathlib import Path

import pytest

from tests.processes.program import Programs

RUN_MODULE = Path(__file__).parent / "programs" / "run_module.py"


class Ledger:
    """The far side of the effects of a test: what it has applied, and how often it was asked, by key."""

    def __init__(self, url):
        self.url = url
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, place):
        with self._opener.open(f"{self.url}/{place}", timeout=10) as answer:
            return json.load(answer)

    @property
    def applied(self):
        return self.get("applied")

    @property
    def asked(self):
        return self.get("asked")

    @property
    def entries(self):
        return self.get("entries")


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """Start a module of the examples that serves; its address."""
    with Programs(tmp_path_factory.mktemp("services")) as programs:
        yield lambda module, *arguments: programs.start(RUN_MODULE, module, *arguments).line()


@pytest.fixture(scope="module")
def ledger(serve):
    return Ledger(serve("examples.outside.ledger"))
