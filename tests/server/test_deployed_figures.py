"""The dashboard, the alerts and the page speak of the figures that there are, and of all of them."""

import json
import re
from pathlib import Path

import pytest
import yaml

from relet.server.exposition import Kind
from relet.server.figures import FIGURES

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy/grafana-dashboard.json"
ALERTS = ROOT / "deploy/alerts.yml"
PAGE = ROOT / "docs/guides/metrics.md"
SAMPLES = {
    name: figure
    for figure in FIGURES
    for name in (
        (f"{figure.name}_bucket", f"{figure.name}_sum", f"{figure.name}_count")
        if figure.kind is Kind.HISTOGRAM
        else (figure.name,)
    )
}
NAME = re.compile(r"\brelet_[a-z_]+")
SELECTED = re.compile(r"\b(relet_[a-z_]+)\{([^}]*)\}")
MATCHER = re.compile(r"([a-z_]+)\s*(?:=~|!=|=)\s*\"")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
OF_EVERY_SERIES = {"job", "instance", "le"}


def panels():
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]


def expressions():
    """Of every panel and variable, and of every alert."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    yield from (target["expr"] for panel in board["panels"] for target in panel["targets"])
    yield from (one["definition"] for one in board["templating"]["list"] if one["type"] == "query")
    yield from (rule["expr"] for rule in rules())


def rules():
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return group["rules"]


def strangers(expression):
    """Names and labels in an expression that no sample has."""
    names = NAME.findall(expression)
    yield from (name for name in names if name not in SAMPLES)
    known = OF_EVERY_SERIES.union(*(SAMPLES[name].labels for name in names if name in SAMPLES))
    for labels in GROUPED.findall(expression):
        yield from (label for label in labels.replace(" ", "").split(",") if label not in known)
    for name, matchers in SELECTED.findall(expression):
        has = OF_EVERY_SERIES | set(SAMPLES[name].labels if name in SAMPLES else ())
        yield from (label for label in MATCHER.findall(matchers) if label not in has)


@pytest.mark.parametrize("expression", list(expressions()))
def test_every_expression_asks_for_what_is_told(expression):
    assert list(strangers(expression)) == []
    assert NAME.search(expression)


def test_a_name_and_a_label_that_nothing_has_are_found():
    asked = 'max by (queue, colour) (relet_tasks{state="live", size="3"}) / relet_made_up_total'
    assert list(strangers(asked)) == ["relet_made_up_total", "colour", "size"]
    assert list(strangers("relet_request_seconds")) == ["relet_request_seconds"], "a histogram has no such sample"


def test_every_figure_is_drawn_and_explained():
    drawn = {
        SAMPLES[name].name
        for panel in panels()
        for target in panel["targets"]
        for name in NAME.findall(target["expr"])
    }
    assert drawn == {figure.name for figure in FIGURES}
    told = set(re.findall(r"`(relet_[a-z_]+)", PAGE.read_text(encoding="utf-8")))
    assert told == {figure.name for figure in FIGURES}


def test_the_dashboard_can_be_imported_with_any_data_source():
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert "datasource" in [one["name"] for one in board["templating"]["list"]]
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert all(one["datasource"] == chosen for panel in panels() for one in (panel, *panel["targets"]))
    assert len({panel["id"] for panel in panels()}) == len(panels())
    assert all(panel["description"] for panel in panels())


def test_every_alert_says_what_is_and_what_to_do_and_the_page_has_it():
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(re.findall(r"`(Relet[A-Za-z]+)`", PAGE.read_text(encoding="utf-8"))) == set(names)
