"""What tests of the larger examples start from: their services, each in a process of its own."""

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from examples.outside.ledger import Ledger as Entries
from examples.outside.serving import Service
from tests.processes.program import Programs
from tests.uses.ledger import Ledger

RUN_MODULE = Path(__file__).parent / "programs" / "run_module.py"


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """Start a module of the examples that serves; its address."""
    with Programs(tmp_path_factory.mktemp("services")) as programs:
        yield lambda module, *arguments: programs.start(RUN_MODULE, module, *arguments).line()


@pytest.fixture(scope="module")
def ledger(serve):
    return Ledger(serve("examples.outside.ledger"))


@pytest.fixture
def beside():
    """Serve a function beside the test, in a thread; its address."""
    with ExitStack() as running:

        def beside(answer):
            service = running.enter_context(Service(answer))
            thread = threading.Thread(target=service.serve_forever, args=(0.01,))
            thread.start()
            running.callback(thread.join)
            running.callback(service.shutdown)
            return service.url

        yield beside


@pytest.fixture
def fresh(beside):
    """A ledger of this test's own; `lose` replies of its first applications never arrive."""
    return lambda lose=0: Ledger(beside(Entries(lose).answer))
