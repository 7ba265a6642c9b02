"""The larger examples with their store in a database, and their worker killed on the way: they end right."""

import pytest

from tests.uses.command import run_example

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    """Artifacts of a store in a database are in the user's folder, here the test's."""
    monkeypatch.setenv("RELET_STATE_DIR", str(tmp_path / "state"))


def test_the_approval_flow_is_answered_once_and_posts_once(url):
    said = run_example("approval_flow", "--url", url, "--answer", "accept", "--kill-at", "2", "--ttl", "1s")
    assert "SIGKILL: worker A is gone" in said
    assert "accept by you on draft 1" in said
    assert "the site has 1 posts of this run" in said


def test_the_research_pipeline_pays_for_no_step_twice(url):
    said = run_example("research_pipeline", "--url", url, "--kill-at", "5", "--ttl", "1s")
    assert "SIGKILL: worker A is gone" in said
    assert "the catalogue applied 1 entry of this run" in said


@pytest.mark.browser
def test_the_browser_agent_orders_once(url, tmp_path):
    said = run_example("browser_agent", "--url", url, "--kill-at", "7", "--folder", str(tmp_path / "agent"))
    assert "A was killed in the middle of action 7" in said
    assert "the shop has 1 order of Ann's" in said
    assert url not in said
