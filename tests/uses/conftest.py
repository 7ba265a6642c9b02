"""What tests of the larger examples start from: their services, each in a process of its own."""

import json
import urllib.request

import pytest

from tests.processes.program import ROOT, Programs


class Ledger:
    """The far side of the effects of a test: what it has applied, and how often it was asked, by key."""

    def __init__(self, url):
        self.url = url

    def get(self, place):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/{place}", timeout=10) as answer:
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


@pytest.fixture
def serve(tmp_path):
    """Start a module of the examples that serves; its address."""
    (tmp_path / "services").mkdir()
    with Programs(tmp_path / "services") as programs:

        def serve(module, *arguments):
            return programs.start(ROOT / "tests/uses/programs/run_module.py", module, *arguments).line()

        yield serve


@pytest.fixture
def ledger(serve):
    return Ledger(serve("examples.outside.ledger"))
