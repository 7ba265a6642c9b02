"""The research pipeline: killed anywhere it ends right, repeats no kept step, and registers its report once."""

from contextlib import closing
from functools import partial

import msgspec
import pytest

from examples.outside.asking import Declined
from examples.outside.ledger import Ledger
from examples.outside.serving import Asked
from examples.research_pipeline.pipeline import Report, research
from tests.processes.program import IMPORTS, ROOT
from tests.uses.lives import KINDS, Life, Nurseries, every_death

APP = "examples.research_pipeline.pipeline:app"
AT_ONCE = 3  # pages that are read side by side, so that so many calls can be under way when the worker dies
LEAST = {"asking": 12, "told": 13, "working": 9, "sent": 5}


@pytest.fixture(scope="module")
def nurseries(tmp_path_factory, serve, ledger):
    environment = {"CORPUS_URL": serve("examples.research_pipeline.corpus"), "DESK_URL": ledger.url}
    with closing(Nurseries(tmp_path_factory.mktemp("nurseries"), APP, environment)) as nurseries:
        yield nurseries


@pytest.fixture
def life(tmp_path):
    """One task in a folder of its own."""

    def life(name, die=None):
        folder = tmp_path / name
        folder.mkdir()
        return Life(folder, partial(research.submit, topic="grain"), lambda *_: None, die)

    return life


def reported(life):
    """What the report says, but for the number that the catalogue gave it."""
    report = msgspec.convert(life.task.result, Report)
    return msgspec.structs.replace(report, number=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_every_point_the_report_is_the_same_and_in_the_catalogue_once(life, nurseries, ledger, kind):
    whole, lives = every_death(kind, life, nurseries)
    assert len(lives) >= LEAST[kind]
    assert (whole.task.state, whole.repeated()) == ("done", {})
    applied, asked = ledger.applied, ledger.asked
    for one in lives:
        assert one.task.state == "done", f"{one.die}: {one.task.error}"
        assert reported(one) == reported(whole), one.die
        repeated = one.repeated()
        assert repeated.total() <= AT_ONCE and set(repeated.values()) <= {1}, f"{one.die}: {repeated}"
        assert not one.kept_by_victim() & repeated.keys(), f"{one.die}: called again although kept: {repeated}"
        (effect,) = one.effects
        assert (effect.state, applied[effect.receipt["key"]]) == ("succeeded", 1), one.die
        assert asked[effect.receipt["key"]] == one.calls["effect", "catalogue", None] <= 2, one.die
        assert one.task.losses <= 1, one.die
    assert len({one.effects[0].id for one in lives}) == len(lives)
    assert set(applied.values()) == {1}
