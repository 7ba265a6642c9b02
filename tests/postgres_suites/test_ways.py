"""A steered clock does not keep the suites from the statements that a server's own clock is asked by."""

import contextlib

import pytest

from relet.store.postgres import engine
from relet.store.postgres.hot import NOT_PLAIN
from relet.testing import Clock
from relet.testing.stores import open_store
from tests.postgres_suites.databases import Databases

pytestmark = pytest.mark.postgres


@pytest.fixture
def databases(request):
    with contextlib.closing(Databases(request.config)) as databases:
        yield databases


@pytest.mark.parametrize(("kind", "answered"), [("18", ["claim_plain", "complete_one"]), ("15", [])])
def test_plain_claims_are_one_statement_over_18_and_the_rules_elsewhere(
    databases, kind, answered, tmp_path, monkeypatch
):
    asked, real = [], engine.asked

    def noted(store, cursor, question, tenant):
        answer = real(store, cursor, question, tenant)
        asked.append((question.name, answer is not NOT_PLAIN))
        return answer

    monkeypatch.setattr(engine, "asked", noted)
    database = databases.of(kind)
    for _ in range(2):  # also a store that comes from the shelf, with another clock
        asked.clear()
        with database.shelf.in_use(), contextlib.closing(open_store(tmp_path, Clock(), url=database.url)) as db:
            db.submit("q", 1)
            db.claim("q").complete(2)
        assert asked == [(name, True) for name in answered]
